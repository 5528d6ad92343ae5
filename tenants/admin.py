"""The Django admin of tenants: Django imports this module, the classes are in the packages."""

from tenants.class_access.admin import AccessAdmin as AccessAdmin
from tenants.onboarding.bundles.admin import BundleAdmin as BundleAdmin
from tenants.requests.rules.admin import RuleAdmin as RuleAdmin

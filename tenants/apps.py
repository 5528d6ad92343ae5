from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"
    verbose_name = "Teams"

    def ready(self) -> None:
        from catalog.classes.commitments import register_grants
        from tenants.grants.queries import granted_total, holder_owners

        register_grants(granted_total, holder_owners)

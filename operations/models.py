"""Django finds the models of the rooms here."""

from operations.adoption.models import Adoption as Adoption
from operations.cordons.models import CordonNotice as CordonNotice
from operations.cordons.models import NodeCordon as NodeCordon
from operations.maintenance.models import Maintenance as Maintenance
from operations.maintenance.models import MaintenanceNode as MaintenanceNode
from operations.maintenance.models import MaintenanceNotice as MaintenanceNotice

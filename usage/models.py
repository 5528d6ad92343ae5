"""Django finds the models of the rooms here."""

from usage.faults.models import FaultRun as FaultRun
from usage.faults.models import FaultSource as FaultSource
from usage.faults.models import GpuFault as GpuFault
from usage.idle.models import IdleRun as IdleRun
from usage.samples.models import CapacityInterval as CapacityInterval
from usage.samples.models import UsageHour as UsageHour
from usage.samples.models import UsageSample as UsageSample
from usage.telemetry.models import ClassHour as ClassHour
from usage.telemetry.models import RunHour as RunHour
from usage.telemetry.models import TelemetrySource as TelemetrySource

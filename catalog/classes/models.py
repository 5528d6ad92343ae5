"""The prices that a class had, as rows."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import DateTimeField, Func

# Not the begin of the transaction: two edits of which one waits for the other keep their order.
CLOCK = Func(template="clock_timestamp()", output_field=DateTimeField())


class ClassPrice(models.Model):
    """The price of a class from `since` until the next row of the class begins. Rows are never changed.

    `by` None: the portal itself; the first row of a class that is older than this table has the price at the upgrade.
    """

    gpu_class = models.ForeignKey("catalog.GpuClass", on_delete=models.CASCADE, related_name="prices", db_index=False)
    price_per_unit_hour = models.DecimalField(max_digits=9, decimal_places=4)
    since = models.DateTimeField(db_default=CLOCK)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint("gpu_class", "since", name="class_price_since_once"),
            models.CheckConstraint(condition=models.Q(price_per_unit_hour__gte=0), name="class_price_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.price_per_unit_hour} since {self.since}"

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Other indexes begin with the same columns. Django's own operation would check the foreign keys again, under a lock."""

    atomic = False
    dependencies = [("tenants", "0019_namespace_origin")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_acknowledgement_announcement_id_61dfd598",
                    "CREATE INDEX CONCURRENTLY tenants_acknowledgement_announcement_id_61dfd598 ON tenants_acknowledgement (announcement_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_approverfor_user_id_481d7424",
                    "CREATE INDEX CONCURRENTLY tenants_approverfor_user_id_481d7424 ON tenants_approverfor (user_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_bundleline_bundle_id_b1d59987",
                    "CREATE INDEX CONCURRENTLY tenants_bundleline_bundle_id_b1d59987 ON tenants_bundleline (bundle_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_classaccess_tenant_id_9a2c22a6",
                    "CREATE INDEX CONCURRENTLY tenants_classaccess_tenant_id_9a2c22a6 ON tenants_classaccess (tenant_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_imageprefix_tenant_id_c57fc6aa",
                    "CREATE INDEX CONCURRENTLY tenants_imageprefix_tenant_id_c57fc6aa ON tenants_imageprefix (tenant_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_membership_tenant_id_55f75d05",
                    "CREATE INDEX CONCURRENTLY tenants_membership_tenant_id_55f75d05 ON tenants_membership (tenant_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_namespace_cluster_id_d4515c45",
                    "CREATE INDEX CONCURRENTLY tenants_namespace_cluster_id_d4515c45 ON tenants_namespace (cluster_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS tenants_termsaccepted_user_id_f886eb1c",
                    "CREATE INDEX CONCURRENTLY tenants_termsaccepted_user_id_f886eb1c ON tenants_termsaccepted (user_id)",
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "acknowledgement",
                    "announcement",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="acknowledgements",
                        to="tenants.announcement",
                    ),
                ),
                migrations.AlterField(
                    "approverfor",
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="approver_for",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    "bundleline",
                    "bundle",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="tenants.bundle",
                    ),
                ),
                migrations.AlterField(
                    "classaccess",
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="class_access",
                        to="tenants.tenant",
                    ),
                ),
                migrations.AlterField(
                    "imageprefix",
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="image_prefixes",
                        to="tenants.tenant",
                    ),
                ),
                migrations.AlterField(
                    "membership",
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="tenants.tenant",
                    ),
                ),
                migrations.AlterField(
                    "namespace",
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="namespaces",
                        to="cluster.cluster",
                    ),
                ),
                migrations.AlterField(
                    "termsaccepted",
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]

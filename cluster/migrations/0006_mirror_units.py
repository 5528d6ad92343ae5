from django.db import migrations, models

# A device's own identity (uuid, bus address, index) does not tell a class apart; these attributes do.
DISTINGUISHING = "('productName', 'profile', 'type')"

# To plan it anew for every few nodes would take twice as long as to count them.
COUNT = f"""
CREATE FUNCTION cluster_count_units(of_cluster bigint, of_nodes text[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
WITH node AS MATERIALIZED (
    SELECT name, ready, schedulable, record -> 'capacity' AS capacity, record -> 'allocatable' AS allocatable,
           md5(concat_ws(' ', (record -> 'labels') - 'kubernetes.io/hostname', record -> 'taints',
               (SELECT string_agg(key, ',' ORDER BY key) FROM jsonb_object_keys(record -> 'allocatable') key)
           ))::uuid AS shape
      FROM cluster_mirrornode WHERE cluster_id = of_cluster AND name = ANY(of_nodes)
), held AS MATERIALIZED (
    SELECT pod.node, pod.namespace, CASE WHEN pod.owner <> '' THEN pod.gpu_class ELSE '' END AS gpu_class,
           part.resource, part.amount, count(*) AS pods
      FROM cluster_mirrorpod pod CROSS JOIN LATERAL (
               SELECT key AS resource, value::bigint AS amount FROM jsonb_each_text(pod.record -> 'requests')
                WHERE value <> '0' AND (key = 'cpu' OR key LIKE '%/%')
               UNION ALL
               SELECT '', sum(jsonb_array_length(claim.record -> 'devices'))
                 FROM (SELECT DISTINCT jsonb_array_elements_text(pod.record -> 'claims') AS name) named
                 JOIN cluster_mirrorobject claim
                   ON claim.cluster_id = of_cluster AND claim.kind = 'ResourceClaim'
                  AND claim.namespace = pod.namespace AND claim.name = named.name
               HAVING sum(jsonb_array_length(claim.record -> 'devices')) > 0
           ) part
     WHERE pod.cluster_id = of_cluster AND pod.node = ANY(of_nodes) AND pod.phase NOT IN ('Succeeded', 'Failed')
     GROUP BY 1, 2, 3, 4, 5
), let_go AS (
    DELETE FROM cluster_mirroruse use
     WHERE use.cluster_id = of_cluster AND use.node = ANY(of_nodes)
       AND NOT EXISTS (
               SELECT FROM held WHERE (held.node, held.namespace, held.gpu_class, held.resource, held.amount)
                                    = (use.node, use.namespace, use.gpu_class, use.resource, use.amount))
), taken AS (
    INSERT INTO cluster_mirroruse AS use (cluster_id, node, namespace, gpu_class, resource, amount, pods)
    SELECT of_cluster, held.* FROM held WHERE gpu_class <> ''
    ON CONFLICT (cluster_id, namespace, gpu_class, resource, node, amount) DO UPDATE
       SET pods = excluded.pods WHERE use.pods <> excluded.pods
), asked AS MATERIALIZED (
    SELECT node, resource, sum(amount * pods) AS units FROM held GROUP BY node, resource
), device AS MATERIALIZED (
    SELECT node.name AS node,
           NOT jsonb_path_exists(device.value -> 'taints', '$[*].effect ? (@ == "NoSchedule" || @ == "NoExecute")')
               AS is_well,
           jsonb_build_object('driver', slice.record ->> 'driver') || coalesce(
               (SELECT jsonb_object_agg(key, value) FROM jsonb_each(device.value -> 'attributes')
                 WHERE key IN {DISTINGUISHING}), '{{}}') AS kind,
           EXISTS (SELECT FROM cluster_mirrorobject claim
                    WHERE claim.cluster_id = of_cluster AND claim.kind = 'ResourceClaim'
                      AND claim.record -> 'devices' @> jsonb_build_array(jsonb_build_object(
                          'driver', slice.record ->> 'driver', 'pool', slice.record ->> 'pool',
                          'device', device.value ->> 'name'))) AS is_held
      FROM node, cluster_mirrorobject slice, jsonb_array_elements(slice.record -> 'devices') device
     WHERE slice.cluster_id = of_cluster AND slice.kind = 'ResourceSlice' AND slice.record ->> 'node' = node.name
       -- A pool is what its newest generation says; older slices are only not gone yet.
       AND NOT EXISTS (SELECT FROM cluster_mirrorobject newer
                        WHERE newer.cluster_id = of_cluster AND newer.kind = 'ResourceSlice'
                          AND newer.record ->> 'driver' = slice.record ->> 'driver'
                          AND newer.record ->> 'pool' = slice.record ->> 'pool'
                          AND (newer.record ->> 'generation')::bigint > (slice.record ->> 'generation')::bigint)
), counted AS MATERIALIZED (
    SELECT node.name, offer.resource, '{{}}'::jsonb AS device,
           coalesce((node.capacity ->> offer.resource)::bigint, 0) AS capacity,
           coalesce((node.allocatable ->> offer.resource)::bigint, 0) AS allocatable,
           coalesce(asked.units, 0) AS used
      FROM node CROSS JOIN LATERAL (
               SELECT jsonb_object_keys(node.capacity || node.allocatable) AS resource
               UNION SELECT asked.resource FROM asked WHERE asked.node = node.name
           ) offer
           LEFT JOIN asked ON asked.node = node.name AND asked.resource = offer.resource
     WHERE offer.resource = 'cpu' OR offer.resource LIKE '%/%'
    UNION ALL
    SELECT device.node, '', device.kind, count(*),
           -- A broken one in use is offered until it is let go: so what is offered and not used is free.
           count(*) FILTER (WHERE device.is_well OR device.is_held),
           count(*) FILTER (WHERE device.is_held)
      FROM device GROUP BY device.node, device.kind
), gone AS (
    DELETE FROM cluster_mirrorunits units
     WHERE units.cluster_id = of_cluster AND units.node = ANY(of_nodes)
       AND NOT EXISTS (SELECT FROM counted WHERE counted.name = units.node AND counted.resource = units.resource
                                             AND counted.device = units.device)
)
INSERT INTO cluster_mirrorunits AS units
       (cluster_id, node, shape, ready, schedulable, resource, device, capacity, allocatable, used)
SELECT of_cluster, node.name, node.shape, node.ready, node.schedulable,
       counted.resource, counted.device, counted.capacity, counted.allocatable, counted.used
  FROM node JOIN counted USING (name)
ON CONFLICT (cluster_id, node, resource, device) DO UPDATE
   SET shape = excluded.shape, ready = excluded.ready, schedulable = excluded.schedulable,
       capacity = excluded.capacity, allocatable = excluded.allocatable, used = excluded.used
 WHERE (units.shape, units.ready, units.schedulable, units.capacity, units.allocatable, units.used)
       IS DISTINCT FROM (excluded.shape, excluded.ready, excluded.schedulable, excluded.capacity, excluded.allocatable,
                         excluded.used);
END $$;
"""

# By table: the nodes that a change of its rows concerns. Of claims: where the slices are that have their devices, and
# where the pods are that hold them.
CONCERNED = {
    "mirrornode": "SELECT cluster_id, name FROM changed",
    "mirrorpod": "SELECT cluster_id, node AS name FROM changed WHERE node <> ''",
    "mirrorobject": """
        SELECT cluster_id, record ->> 'node' AS name FROM changed WHERE kind = 'ResourceSlice'
        UNION SELECT slice.cluster_id, slice.record ->> 'node' FROM (
            SELECT DISTINCT changed.cluster_id, device.value ->> 'driver' AS driver, device.value ->> 'pool' AS pool
              FROM changed, jsonb_array_elements(changed.record -> 'devices') device WHERE kind = 'ResourceClaim'
        ) held JOIN cluster_mirrorobject slice
            ON slice.cluster_id = held.cluster_id AND slice.kind = 'ResourceSlice'
           AND slice.record ->> 'driver' = held.driver AND slice.record ->> 'pool' = held.pool
        UNION SELECT pod.cluster_id, pod.node FROM changed JOIN cluster_mirrorpod pod
            ON pod.cluster_id = changed.cluster_id AND pod.namespace = changed.namespace AND pod.node <> ''
           AND pod.record -> 'claims' <> '[]' AND pod.record -> 'claims' @> to_jsonb(changed.name)
         WHERE changed.kind = 'ResourceClaim'""",
}
# PostgreSQL gives a trigger with a transition table one event; an update concerns the old rows and the new ones.
EVENTS = {
    "came": "INSERT ON {table} REFERENCING NEW TABLE AS changed",
    "went": "DELETE ON {table} REFERENCING OLD TABLE AS changed",
    "before": "UPDATE ON {table} REFERENCING OLD TABLE AS changed",
    "after": "UPDATE ON {table} REFERENCING NEW TABLE AS changed",
}


def follow(table: str) -> str:
    function = f"cluster_{table}_counts"
    triggers = [
        f"CREATE TRIGGER cluster_{table}_{name} AFTER {event.format(table=f'cluster_{table}')} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {function}();"
        for name, event in EVENTS.items()
    ]
    return f"""
CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM cluster_count_units(cluster_id, array_agg(DISTINCT name::text))
       FROM ({CONCERNED[table]}) concerned GROUP BY cluster_id;
    RETURN NULL;
END $$;
{"".join(triggers)}"""


def forget(table: str) -> str:
    triggers = [f"DROP TRIGGER cluster_{table}_{name} ON cluster_{table};" for name in EVENTS]
    return f"{''.join(triggers)} DROP FUNCTION cluster_{table}_counts();"


INDEXES = """
CREATE INDEX mirror_slice_node ON cluster_mirrorobject (cluster_id, (record ->> 'node')) WHERE kind = 'ResourceSlice';
CREATE INDEX mirror_slice_pool ON cluster_mirrorobject (cluster_id, (record ->> 'pool')) WHERE kind = 'ResourceSlice';
CREATE INDEX mirror_claim_devices ON cluster_mirrorobject USING gin ((record -> 'devices') jsonb_path_ops)
 WHERE kind = 'ResourceClaim';
CREATE INDEX mirror_pod_claims ON cluster_mirrorpod USING gin ((record -> 'claims') jsonb_path_ops)
 WHERE record -> 'claims' <> '[]';
CREATE INDEX mirror_units_freest
    ON cluster_mirrorunits (cluster_id, shape, resource, device, (allocatable - used) DESC, node)
 WHERE ready AND schedulable;
"""
NO_INDEXES = """
DROP INDEX mirror_slice_node, mirror_slice_pool, mirror_claim_devices, mirror_pod_claims, mirror_units_freest;
"""

# The mirror may be there already.
FILL = """
SELECT cluster_count_units(cluster_id, array_agg(name::text)) FROM cluster_mirrornode GROUP BY cluster_id;
"""


class Migration(migrations.Migration):
    """Units by node and resource, counted where the rows are: what a page shows of 1,000 nodes is one short sum."""

    dependencies = [("cluster", "0005_mirror_news")]
    operations = [
        migrations.CreateModel(
            name="MirrorUnits",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster_id", models.BigIntegerField()),
                ("node", models.CharField(max_length=253)),
                ("shape", models.UUIDField()),
                ("ready", models.BooleanField()),
                ("schedulable", models.BooleanField()),
                ("resource", models.CharField(max_length=253)),
                ("device", models.JSONField()),
                ("capacity", models.BigIntegerField()),
                ("allocatable", models.BigIntegerField()),
                ("used", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint("cluster_id", "node", "resource", "device", name="mirror_units_once")
                ]
            },
        ),
        migrations.CreateModel(
            name="MirrorUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster_id", models.BigIntegerField()),
                ("node", models.CharField(max_length=253)),
                ("namespace", models.CharField(max_length=63)),
                ("gpu_class", models.CharField(max_length=63)),
                ("resource", models.CharField(max_length=253)),
                ("amount", models.BigIntegerField()),
                ("pods", models.BigIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["cluster_id", "node"], name="mirror_use_node")],
                "constraints": [
                    models.UniqueConstraint(
                        "cluster_id", "namespace", "gpu_class", "resource", "node", "amount", name="mirror_use_once"
                    )
                ],
            },
        ),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} SET UNLOGGED", f"ALTER TABLE {table} SET LOGGED")
            for table in ("cluster_mirrorunits", "cluster_mirroruse")
        ),
        migrations.RunSQL(INDEXES, NO_INDEXES),
        migrations.RunSQL(COUNT, "DROP FUNCTION cluster_count_units(bigint, text[]);"),
        *(migrations.RunSQL(follow(table), forget(table)) for table in CONCERNED),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]

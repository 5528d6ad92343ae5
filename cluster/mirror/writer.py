"""The only writer of the mirror: it turns notes of the watches into rows, one short transaction per batch.

For each object it keeps uid, resource version and a digest in memory, never the record: an event that is not newer is
ignored, an event that changes nothing shown writes nothing. Every batch touches `MirrorEpoch` first; when that row is
gone, PostgreSQL has emptied the unlogged tables and everything is listed again (`EpochLost`).

Changes that owners must learn of are written beside the rows as `MirrorNews` and delivered after the commit, in a
separate transaction: a locked owner row does not block the mirror, and news survive a crash of the watcher.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from cluster.client.managed_fields import UNTRACKED
from cluster.mirror import admissions, news, pod_removals, tables
from cluster.mirror.batch import KindMark, MirrorBatch, page_channels
from cluster.mirror.records.kinds import KINDS, MirroredKind
from cluster.mirror.records.record_format import record_format
from cluster.mirror.records.types import ObservedObject
from cluster.mirror.relist import NEVER_AGAIN, RelistDiff
from cluster.mirror.watch import NoteType, WatchNote, later_version
from cluster.models import AppliedObject, MirrorEpoch, MirrorKind
from portal.core.due import wake_owners

log = structlog.get_logger(__name__)

STARTING = "The watcher has just started and is listing the cluster."
# Kinds of which every change wakes the owner; of other kinds only drift, and the start and end of a deletion, do.
_TELLING = {"Pod", "Job", "Workload", "PersistentVolumeClaim"}
# Uids of deleted objects, so that a late event does not bring one back.
_REMEMBERED_DELETIONS = 10_000
_HEARD_EVERY_S = 1.0
_TELL_AGAIN_AFTER_S = 1.0


class EpochLost(Exception):
    """The tables were emptied, or this is not the cluster that was mirrored: everything has to be listed again."""


@dataclass(slots=True)
class _Known:
    version: int
    digest: int = 0
    difference: int = 0


@dataclass
class _KindState:
    known: dict[str, _Known] = field(default_factory=dict)
    deleted: OrderedDict[str, None] = field(default_factory=OrderedDict)
    # uids in the list that is being read; None between lists
    listing: set[str] | None = None
    heard_written_at: float = 0.0
    has_problem: bool = False
    doubts: RelistDiff = field(default_factory=RelistDiff)


class MirrorWriter:
    """One cluster's mirror for one run of the watcher. Not thread-safe; any database error ends its life.

    `capacity_owners` returns the owner labels to wake when nodes or devices change.
    """

    def __init__(self, cluster_id: int, *, capacity_owners: Callable[[], Iterable[str]] = tuple) -> None:
        self._cluster_id = cluster_id
        self._capacity_owners = capacity_owners
        # Namespaces to relist.
        self.doubtful: set[str] = set()
        # The API server answers again.
        self.is_healed = False
        self._epoch = 0
        self._kinds = {name: _KindState() for name in KINDS}
        self._job_owners: dict[str, str] = {}
        self._strangers: set[str] = set()
        self._has_news = True
        self._tell_after = 0.0

    # ---- methods that the watcher calls ----------------------------------------------------------------------

    @transaction.atomic
    def open(self) -> None:
        """Continues with the existing rows, or begins a new epoch if they are gone or of another format."""
        row = MirrorEpoch.objects.select_for_update().filter(cluster_id=self._cluster_id).first()
        if row is None or row.format != record_format():
            tables.forget_everything(self._cluster_id)
            epoch = max(row.epoch + 1 if row else 0, int(time.time() * 1000))
            values = {"epoch": epoch, "heard_at": Now(), "beat_at": Now(), "format": record_format()}
            row, _ = MirrorEpoch.objects.update_or_create(cluster_id=self._cluster_id, defaults=values)
        self._epoch = row.epoch
        # A Workload that changed while nobody watched may be listed before its Job.
        self._job_owners = tables.job_owners(self._cluster_id)
        # Rows may be as old as the last watcher: known, but not current until they are listed.
        MirrorKind.objects.filter(cluster_id=self._cluster_id).update(problem=STARTING)

    def write(self, notes: Sequence[tuple[WatchNote, ObservedObject | None]]) -> set[str]:
        """Writes one batch in one transaction. Returns the page channels to hint. Raises EpochLost."""
        batch = MirrorBatch()
        try:
            with transaction.atomic():
                self._touch(heard=True)
                for note, seen in notes:
                    if note.what is NoteType.LISTING:
                        # This reads the tables, so the notes before it must be written first.
                        self._flush(batch)
                        batch = MirrorBatch(channels=batch.channels)
                    self._take(note, seen, batch)
                self._flush(batch)
        except EpochLost:
            MirrorEpoch.objects.filter(cluster_id=self._cluster_id).delete()
            raise
        return batch.channels

    def beat(self) -> None:
        """Records that the watcher is alive. Raises EpochLost."""
        self._touch(heard=False)

    def tell(self) -> None:
        """Records drift and wakes the owners of what changed. Undelivered news are delivered at the next call."""
        while self._has_news and time.monotonic() >= self._tell_after:
            self._tell_some()

    def _tell_some(self) -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
                taken = tables.take_news(self._cluster_id)
                owners = {owner for owner, _uid, _difference in taken if owner}
                for _owner, uid, difference in taken:
                    if difference:
                        rows = AppliedObject.objects.filter(cluster_id=self._cluster_id, uid=uid)
                        rows.update(difference=difference)
                        # Another client may have changed the owner label, so the owner is read from the row.
                        owners.update(rows.values_list("owner", flat=True))
                wake_owners(owners)
        except OperationalError as error:
            # Another process has locked the row, or there was a deadlock: the news are still there. A lost connection
            # shows at the next statement.
            log.warning("news_delayed", error=str(error).split("\n")[0])
            self._tell_after = time.monotonic() + _TELL_AGAIN_AFTER_S
            return
        self._has_news = len(taken) == tables.NEWS_AT_ONCE

    # ---- handling of one note --------------------------------------------------------------------------------

    def _take(self, note: WatchNote, seen: ObservedObject | None, batch: MirrorBatch) -> None:
        state = self._kinds[note.kind.name]
        if note.what in (NoteType.AGAIN, NoteType.COMPARED):
            # These notes come from a relist: they do not show whether the watch works.
            self._look_again(note, seen, state, batch)
            return
        mark = batch.marks.setdefault(note.kind.name, KindMark())
        mark.is_heard = mark.is_heard or note.what is not NoteType.TROUBLE
        match note.what:
            case NoteType.LISTING:
                self._begin_list(note.kind, state, note.resource_version)
            case NoteType.SEEN if seen is not None:
                self._see(note.kind, state, seen, batch)
            case NoteType.REMOVED if seen is not None:
                self._remove(note.kind, state, seen, batch)
            case NoteType.LISTED:
                self._end_list(note.kind, state, batch)
                mark.is_listed, mark.problem = True, ""
            case NoteType.HEARD if state.listing is None:
                mark.problem = ""
            case NoteType.TROUBLE:
                mark.problem = note.text
        if note.what in (NoteType.LISTED, NoteType.HEARD) or (
            note.what is not NoteType.LISTING and state.listing is None
        ):
            mark.version = later_version(mark.version, note.resource_version)
        if note.what in (NoteType.SEEN, NoteType.REMOVED) and state.listing is None:
            mark.problem = ""

    def _begin_list(self, kind: MirroredKind, state: _KindState, version: str) -> None:
        row = MirrorKind.objects.filter(cluster_id=self._cluster_id, kind=kind.name).first()
        if row and row.resource_version.isdigit() and version.isdigit() and int(version) < int(row.resource_version):
            raise EpochLost(f"{kind.name} was seen at {row.resource_version} and is now at {version}: another cluster.")
        known = tables.row_versions(self._cluster_id, kind)
        # Known state that agrees with the row is kept: it avoids writing what has not changed.
        state.known = {
            uid: state.known[uid] if uid in state.known else _Known(version) for uid, version in known.items()
        }
        state.listing = set()

    def _end_list(self, kind: MirroredKind, state: _KindState, batch: MirrorBatch) -> None:
        if state.listing is None:
            return
        for uid in [uid for uid in state.known if uid not in state.listing]:
            del state.known[uid]
            self._job_owners.pop(uid, None)
            batch.deletes.setdefault(kind.name, set()).add(uid)
        if kind.name == "Workload":
            batch.listed_workloads = state.listing
        state.listing = None

    def _see(self, kind: MirroredKind, state: _KindState, seen: ObservedObject, batch: MirrorBatch) -> None:
        seen = self._learn(kind, state, seen, batch)
        if state.listing is not None:
            state.listing.add(seen.uid)
        known = state.known.get(seen.uid)
        if seen.uid in state.deleted or (known is not None and seen.resource_version <= known.version):
            return
        if not self._is_kept(kind, seen):
            if known is not None:
                self._forget(kind, state, seen, batch)
            return
        if seen.ownership is not None:
            seen = replace(seen, record={**seen.record, "own": seen.ownership.baseline()})
        known = state.known.setdefault(seen.uid, _Known(0))
        digest, is_new = seen.digest(), known.version == 0
        known.version = seen.resource_version
        if digest == known.digest:
            return
        known.digest = digest
        batch.put(seen, is_listed=state.listing is not None)
        batch.channels |= page_channels(seen.kind, seen.namespace, seen.name, is_ours=bool(seen.owner))
        if seen.owner and (kind.name in _TELLING or (seen.deleting_since and not is_new)):
            batch.owners.add(seen.owner)

    def _look_again(self, note: WatchNote, seen: ObservedObject | None, state: _KindState, batch: MirrorBatch) -> None:
        if seen is not None:
            if self._is_kept(note.kind, seen):
                state.doubts.see(seen)
            return
        if state.listing is not None or not note.resource_version.isdigit():
            state.doubts.forget(note.text)
            return

        def version_of(uid: str) -> int | None:
            return NEVER_AGAIN if uid in state.deleted else state.known[uid].version if uid in state.known else None

        rows = tables.row_versions(self._cluster_id, note.kind, note.text)
        there, gone, is_open = state.doubts.judge(note.text, int(note.resource_version), rows, version_of)
        for one in there:
            self._see(note.kind, state, one, batch)
        for uid in gone:
            self._lose(note.kind, state, uid, batch)
        if is_open:
            self.doubtful.add(note.text)
        if there or gone:
            log.warning("events_were_lost", kind=note.kind.name, namespace=note.text, objects=len(there) + len(gone))

    def _lose(self, kind: MirroredKind, state: _KindState, uid: str, batch: MirrorBatch) -> None:
        del state.known[uid]
        state.deleted[uid] = None
        batch.upserts = {key: one for key, one in batch.upserts.items() if one.uid != uid}
        batch.deletes.setdefault(kind.name, set()).add(uid)

    def _learn(self, kind: MirroredKind, state: _KindState, seen: ObservedObject, batch: MirrorBatch) -> ObservedObject:
        """Records what other kinds need: the owner of a Job, the namespaces that are ours."""
        if kind.name == "Namespace":
            if seen.is_ours:
                self._strangers.discard(seen.name)
            elif seen.name not in self._strangers:
                self._strangers.add(seen.name)
                if state.listing is None:
                    batch.strangers.add(seen.name)
                    for key, one in [*batch.upserts.items()]:
                        if one.namespace == seen.name and not self._is_kept(KINDS[one.kind], one):
                            del batch.upserts[key]
        elif kind.name == "Job" and seen.owner and seen.uid not in self._job_owners:
            self._job_owners[seen.uid] = batch.jobs[seen.uid] = seen.owner
        elif kind.name == "Workload" and not seen.owner:
            return replace(seen, owner=self._job_owners.get(str(seen.columns["job_uid"]), ""))
        return seen

    def _is_kept(self, kind: MirroredKind, seen: ObservedObject) -> bool:
        # An unknown namespace may be ours: its own event may still arrive.
        is_everywhere = kind.is_everywhere or seen.is_everywhere
        return seen.is_kept and (is_everywhere or seen.is_ours or seen.namespace not in self._strangers)

    def _remove(self, kind: MirroredKind, state: _KindState, seen: ObservedObject, batch: MirrorBatch) -> None:
        state.deleted[seen.uid] = None
        if len(state.deleted) > _REMEMBERED_DELETIONS:
            state.deleted.popitem(last=False)
        if state.listing is not None:
            state.listing.discard(seen.uid)
        if kind.name == "Namespace":
            self._strangers.discard(seen.name)
        elif kind.name == "Job":
            self._job_owners.pop(seen.uid, None)
        if seen.uid in state.known:
            self._forget(kind, state, seen, batch)

    def _forget(self, kind: MirroredKind, state: _KindState, seen: ObservedObject, batch: MirrorBatch) -> None:
        del state.known[seen.uid]
        key = (seen.kind, seen.namespace, seen.name)
        if key in batch.upserts and batch.upserts[key].uid == seen.uid:
            del batch.upserts[key]
        batch.deletes.setdefault(kind.name, set()).add(seen.uid)
        if kind.name in ("Pod", "Workload"):
            batch.removed[seen.uid] = seen

    # ---- writing a batch to the database ---------------------------------------------------------------------

    def _touch(self, *, heard: bool) -> None:
        if not tables.touch(self._cluster_id, self._epoch, heard=heard):
            raise EpochLost("The mirror's tables were emptied.")

    def _flush(self, batch: MirrorBatch) -> None:
        if batch.strangers:
            batch.owners |= tables.forget_namespaces(self._cluster_id, batch.strangers)
        for name, uids in batch.deletes.items():
            self._delete(KINDS[name], uids, batch)
        admissions.record_admissions(self._cluster_id, batch)
        self._compare(batch)
        rows: dict[str, list[dict[str, Any]]] = {}
        for seen in batch.upserts.values():
            rows.setdefault(KINDS[seen.kind].table, []).append(tables.row(self._cluster_id, seen))
        for table, found in rows.items():
            # Another client has changed the label: their rows no longer find the object.
            batch.owners |= tables.upsert(table, found)
        if batch.jobs:
            # Nobody was told when they were seen: their owners were not known yet.
            for namespace, owner in tables.adopt_workloads(self._cluster_id, batch.jobs):
                batch.channels.add(namespace)
                batch.owners.add(owner)
        batch.owners |= news.owners_of_lists(self._cluster_id, batch)
        self._mark(batch)
        if batch.has_site_news:
            batch.owners.update(tables.copy_site(self._cluster_id))
        if news.write_news(self._cluster_id, batch, capacity_owners=self._capacity_owners):
            self._has_news = True

    def _delete(self, kind: MirroredKind, uids: set[str], batch: MirrorBatch) -> None:
        if kind.name == "Pod":
            pod_removals.keep(self._cluster_id, uids, batch.removed)
        for uid, namespace, name, owner in tables.delete(self._cluster_id, kind, uids):
            batch.channels |= page_channels(kind.name, namespace, name, is_ours=bool(owner))
            if owner or kind.is_applied:
                batch.gone.append((owner, uid, kind.name))

    def _compare(self, batch: MirrorBatch) -> None:
        """Finds fields of our objects that other writers changed or removed; each difference is reported once.

        Without managedFields nobody knows what was changed: another writer emptied them, or made a list that the API
        server cannot track, with the same key twice.
        """
        ours = {seen.uid: seen for seen in batch.upserts.values() if KINDS[seen.kind].is_applied}
        before = tables.baselines(ours) if ours else {}
        for uid, seen in ours.items():
            found = seen.ownership
            if found is None:
                fields = [UNTRACKED] if before.get(uid) else []
            else:
                fewer = found.removed_since(before.get(uid))
                removed = [group for group in fewer if not any(path.startswith(group) for path in found.fields)]
                fields = [*found.fields, *removed]
            since, manager = (found.since, found.manager) if found else ("", "")
            known = self._kinds[seen.kind].known[uid]
            known.difference, seen_before = hash((*fields, since)) if fields else 0, known.difference
            if fields and known.difference != seen_before:
                text = {"fields": fields, "manager": manager, "since": since or news.now_text()}
                batch.differences.append((seen.owner, uid, text))

    def _mark(self, batch: MirrorBatch) -> None:
        changed = {seen.kind for seen in batch.upserts.values()} | batch.deletes.keys()
        for name, mark in batch.marks.items():
            state = self._kinds[name]
            problem = mark.problem
            if problem == "" and not mark.is_listed and not state.has_problem:
                problem = None
            is_due = time.monotonic() - state.heard_written_at >= _HEARD_EVERY_S
            # A kind's stored version always matches its rows: a list at that version returns the same objects.
            if not (mark.is_listed or is_due or problem is not None or name in changed):
                continue
            state.heard_written_at = time.monotonic()
            if problem is not None:
                if bool(problem) != state.has_problem:
                    log.warning("watch_trouble" if problem else "watch_healed", kind=name, problem=problem)
                    self.is_healed |= not problem
                state.has_problem = bool(problem)
            tables.mark_kind(
                self._cluster_id,
                name,
                self._epoch,
                is_listed=mark.is_listed,
                is_heard=mark.is_heard,
                version=mark.version,
                problem=problem,
            )

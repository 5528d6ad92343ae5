"""Launch links fill in a form and start nothing; ended work can start again, unchanged or changed."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make
from workloads.launch import actions
from workloads.launch.form import links
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume, Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted")]
REPOSITORY = "https://github.com/jupyter/docker-stacks"


@pytest.fixture
def her(alice: User, images: list[Image]) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def ended(notebook: LaunchSpec, by_alice: Actor) -> Workload:
    """Alice's notebook `one` with options and a volume; its run has ended."""
    options = Options(cpu=1, env=(("SECRET_PATH", "/mine"),))
    wanted = LaunchSpec(**{**vars(notebook), "volume": "data", "options": options})
    found = actions.launch("team-a", wanted, by=by_alice)
    found.runs.update(ended_at=timezone.now(), outcome="stopped")
    return found


def text(response: Any) -> str:
    return html.unescape(response.content.decode())


def filled(page: str) -> dict[str, str]:
    """What the form would send: texts, numbers, selected options and ticked boxes."""
    found = dict(re.findall(r'<input type="(?:text|number)" name="(\w+)" value="([^"]*)"', page))
    found |= dict(re.findall(r'<textarea name="(\w+)"[^>]*>\s*([^<]*)</textarea>', page))
    found |= dict(re.findall(r'<input type="radio" name="(\w+)" value="([^"]*)"[^>]*checked', page))
    select = re.search(r'<select name="image".*?<option value="([^"]*)" selected', page, re.DOTALL)
    return {**found, **({"image": select[1]} if select else {})}


# ---- opening a link ------------------------------------------------------------------------------------------------


def test_it_leads_to_the_form_of_the_only_team_filled_in(her: Client, a100: GpuClass) -> None:
    response = her.get(f"/launch?class={a100.slug}&image=python&units=2&repo={REPOSITORY}&ref=main&name=mine")
    assert response.status_code == 302
    page = text(her.get(response["Location"]))
    values = filled(page)
    assert {
        name: values[name] for name in ("gpu_class", "units", "repository", "reference", "name", "image", "kind")
    } == {
        "gpu_class": a100.slug,
        "units": "2",
        "repository": REPOSITORY,
        "reference": "main",
        "name": "mine",
        "image": "python",
        "kind": "job",  # the only kind that the image supports
    }
    # The page shows what will run before the button.
    assert "Filled in from a link. Nothing has started." in page
    assert "on 2 GPUs of <b>" in page
    assert f'clones <b class="address">{REPOSITORY}</b> at <b>main</b>. Launch it only if you trust this code.' in page
    assert re.search(r'<details class="more" open>', page)


def test_following_it_changes_nothing_and_one_confirmation_launches(her: Client, a100: GpuClass) -> None:
    events = Event.objects.count()
    where = her.get(f"/launch?class={a100.slug}&repo={REPOSITORY}")["Location"]
    page = text(her.get(where))
    assert (Workload.objects.count(), Run.objects.count(), Volume.objects.count()) == (0, 0, 0)
    assert Event.objects.count() == events

    assert her.post(where, filled(page)).status_code == 302
    assert Run.objects.get().spec["repository"] == REPOSITORY


def test_with_several_teams_it_asks_which(her: Client, cluster: Cluster, alice: User) -> None:
    make.member(make.tenant(cluster, slug="team-b"), alice)
    page = text(her.get(f"/launch?image=minimal&repo={REPOSITORY}"))
    query = f"image=minimal&repo={REPOSITORY.replace(':', '%3A').replace('/', '%2F')}"
    assert f'href="/teams/team-a/launch?{query}"' in page
    assert f'href="/teams/team-b/launch?{query}"' in page
    assert REPOSITORY in page
    assert her.get("/launch?image=minimal&team=team-b")["Location"] == "/teams/team-b/launch?image=minimal"


def test_a_team_of_others_does_not_exist(her: Client, cluster: Cluster, charlie: User) -> None:
    make.tenant(cluster, slug="team-b")
    assert her.get("/launch?team=team-b").status_code == 404
    assert her.get("/launch?team=%00").status_code == 404
    stranger = Client()
    stranger.force_login(charlie)
    assert stranger.get("/launch?team=team-a&image=minimal").status_code == 404
    assert stranger.get("/teams/team-a/launch?image=minimal").status_code == 404
    assert "You are not in a team" in text(stranger.get("/launch?image=minimal"))


def test_nobody_signs_in_first(a100: GpuClass) -> None:
    response = Client().get(f"/launch?class={a100.slug}&units=2")
    assert response["Location"] == f"/login?next=/launch%3Fclass%3D{a100.slug}%26units%3D2"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("image=absent-one", "The catalog has no image 'absent-one' for a notebook."),
        ("class=h900&image=minimal", "The class 'h900' is not available to your team for a notebook."),
        (
            "image=minimal&units=many",
            "The link sets units to 'many', which is not a number from 1 to 10,000; 1 is filled in.",
        ),
        ("image=minimal&units=0", "The link sets units to '0'"),
        (
            "image=minimal&units=99999999999999999999999",
            "The link sets units to '99999999999999999999999', which is not a number from 1 to 10,000",
        ),
        ("image=minimal&units=²", "The link sets units to '²'"),
        ("image=minimal&name=My%20Lab", "The link's name 'My Lab' is not valid"),
        ("repo=git@github.com:a/b", "The link's repository was ignored."),
        ("repo=https://me:secret@example.org/a", "The link's repository was ignored."),
        ("image=minimal&ref=main", "The link's branch or tag was ignored."),
        (f"repo={REPOSITORY}&ref=--upload-pack=x", "The link's branch or tag was ignored."),
        ("kind=pod&image=minimal", "The link sets kind to 'pod', which was ignored. The kind is notebook or job."),
        (
            "kind=job&workers=many",
            "The link sets workers to 'many', which is not a number from 1 to 256; 1 is filled in.",
        ),
        ("workers=257", "The link sets workers to '257', which is not a number from 1 to 256"),
        ("kind=notebook&workers=3", "The link sets 3 workers, which was ignored. A notebook has 1 worker."),
        ("image=minimal&colour=blue", "The link also sets 'colour', which was ignored."),
        ("name=%00&image=%00&class=%00", "is not valid"),
        ("like=nothing&image=minimal", ""),
    ],
)
def test_what_is_unknown_or_not_there_is_said(query: str, words: str, her: Client) -> None:
    response = her.get(f"/launch?{query}", follow=True)
    if not words:
        assert response.status_code == 404
        return
    assert response.status_code == 200
    assert words in text(response)


@pytest.mark.parametrize(
    "extra",
    [
        "env=A%3D1",
        "command=curl+x",
        "volume=data",
        "mount_path=/home/work/x",
        "cpu=1",
        "accept_terms=x:1",
        "secrets=TOKEN",
    ],
)
def test_what_only_the_person_says_cannot_come_from_a_link(
    extra: str, her: Client, ended: Workload, a100: GpuClass
) -> None:
    page = text(her.get(f"/teams/team-a/launch?image=minimal&{extra}"))
    name = extra.partition("=")[0]
    assert f"The link also sets '{name}', which was ignored." in page
    assert not filled(page).get(name)


def test_somebody_elses_repository_never_meets_what_was_typed_last_time(her: Client, ended: Workload) -> None:
    page = text(her.get("/teams/team-a/launch"))
    assert filled(page)["env"] == "SECRET_PATH=/mine"
    assert filled(page)["volume"] == "data"

    for query in (f"repo={REPOSITORY}", "image=minimal", f"like=&repo={REPOSITORY}"):
        values = filled(text(her.get(f"/teams/team-a/launch?{query}")))
        assert (values["env"], values.get("volume", "")) == ("", ""), query
    values = filled(text(her.get(f"/teams/team-a/launch?like=one&repo={REPOSITORY}")))
    assert (values["env"], values.get("repository", "")) == ("SECRET_PATH=/mine", "")


def test_a_volume_of_the_team_can_be_named_where_nothing_else_is(her: Client, ended: Workload, a100: GpuClass) -> None:
    Volume.objects.create(namespace=ended.namespace, name="other", size_gib=5)
    for more in ("", f"&class={a100.slug}&units=2"):
        assert filled(text(her.get(f"/teams/team-a/launch?volume=other{more}")))["volume"] == "other"
    assert "The volume 'gone' does not exist." in text(her.get("/teams/team-a/launch?volume=gone"))
    assert "There is no volume 'No Name'." in text(her.get("/teams/team-a/launch?volume=No%20Name"))
    for code in (f"repo={REPOSITORY}", "image=minimal"):
        assert filled(text(her.get(f"/teams/team-a/launch?volume=other&{code}"))).get("volume", "") == ""


# ---- creating a link -----------------------------------------------------------------------------------------------


def test_the_form_makes_the_link_and_the_button_that_fill_it_in(her: Client, a100: GpuClass) -> None:
    typed = {
        "kind": "job", "name": "x", "gpu_class": a100.slug, "units": 2, "image": "python", "repository": REPOSITORY,
        "reference": "v1.2", "env": "A=1", "volume": "data", "workers": 3,
    }  # fmt: skip
    page = text(her.post("/teams/team-a/launch", {**typed, "look": "rest"}))
    found = re.search(r'<pre class="raw" id="share-link"[^>]*>([^<]+)</pre>', page)
    assert found
    address = urlsplit(found[1])
    assert address.path == "/launch"
    assert dict(parse_qsl(address.query)) == {
        "class": a100.slug, "image": "python", "units": "2", "repo": REPOSITORY, "ref": "v1.2", "kind": "job",
        "workers": "3",
    }  # fmt: skip
    markdown = re.search(r'<pre class="raw" id="share-markdown"[^>]*>([^<]+)</pre>', page)
    assert markdown
    badge = re.fullmatch(r"\[!\[Open on GPU Portal\]\((\S+)\)\]\((\S+)\)", markdown[1])
    assert badge
    assert badge[2] == found[1]
    assert urlsplit(badge[1]).path == "/static/portal/launch.svg"
    values = filled(text(her.get(f"{address.path}?{address.query}", follow=True)))
    shown = ("kind", "gpu_class", "image", "units", "workers", "repository", "reference")
    assert {name: values[name] for name in shown} == {
        "kind": "job", "gpu_class": a100.slug, "image": "python", "units": "2", "workers": "3",
        "repository": REPOSITORY, "reference": "v1.2",
    }  # fmt: skip


def test_pages_of_others_show_the_button_and_no_other_file() -> None:
    elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    badge = Client().get("/static/portal/launch.svg", headers=elsewhere)
    assert (badge.status_code, badge["Cross-Origin-Resource-Policy"]) == (200, "cross-origin")
    assert b"".join(badge).startswith(b"<svg ")
    assert Client().get("/static/portal/favicon.svg", headers=elsewhere).status_code == 403


def test_a_link_that_stands_elsewhere_is_followed(her: Client) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert her.get("/launch?image=minimal", headers=followed).status_code == 302
    assert (
        her.post("/teams/team-a/launch", {"name": "x"}, headers={**followed, "origin": "https://x.org"}).status_code
        == 403
    )


def test_several_workers_make_it_a_job() -> None:
    assert links.read_link({"class": "a100", "workers": "3"}).values == {
        "gpu_class": "a100",
        "workers": "3",
        "kind": "job",
    }
    assert links.read_link({"class": "a100", "workers": "1"}) == links.LaunchLink({"gpu_class": "a100"})


def test_what_is_written_is_what_is_read() -> None:
    values = {
        "gpu_class": "a100",
        "image": "PyTorch & co",
        "units": "3",
        "workers": "2",
        "repository": "https://x.org/a?b=1",
        "kind": "job",
    }
    assert links.read_link(dict(parse_qsl(links.write_link(values)))) == links.LaunchLink(values)
    assert (
        links.write_link({"gpu_class": "a100", "units": 1, "workers": 1, "image": "", "reference": None})
        == "class=a100"
    )


# ---- duplicating and starting again ----------------------------------------------------------------------------------


def test_another_like_it_takes_all_over_under_a_free_name(her: Client, ended: Workload, a100: GpuClass) -> None:
    page = text(her.get("/teams/team-a/workloads/one"))
    assert 'href="/teams/team-a/launch?like=one"' in page
    page = text(her.get("/teams/team-a/launch?like=one"))
    assert "Filled in with the configuration of <b>one</b>." in page
    values = filled(page)
    assert (values["name"], values["volume"], values["env"], values["cpu"], values["image"]) == (
        "one-2", "data", "SECRET_PATH=/mine", "1", "minimal",
    )  # fmt: skip
    assert her.post("/teams/team-a/launch", values).status_code == 302
    first, second = Run.objects.order_by("pk").values_list("spec", flat=True)
    own = {"workload": "one-2", "owner": second["owner"], "identity": second["identity"]}
    assert first["identity"] != second["identity"]
    assert second == {**first, **own}


def test_a_volume_that_is_in_use_is_left_out_and_said(her: Client, ended: Workload) -> None:
    ended.runs.update(ended_at=None, outcome="")
    for address in ("/teams/team-a/launch?like=one", "/teams/team-a/launch"):
        page = text(her.get(address))
        assert "Its volume data is used by one and was not filled in." in page
        assert filled(page).get("volume", "") == ""
        assert "<b>data</b> (10 GiB, used by one)" in page


def test_last_time_is_the_persons_own_and_can_be_forgotten(
    her: Client, bob: User, ended: Workload, images: list[Image]
) -> None:
    page = text(her.get("/teams/team-a/launch"))
    assert "Filled in from your last launch (one)." in page
    assert filled(text(her.get("/teams/team-a/launch?fresh=1")))["env"] == ""
    his = Client()
    his.force_login(bob)
    assert "as last time" not in text(his.get("/teams/team-a/launch"))
    # If the address has only class and units, the other fields are filled in from the last launch.
    assert filled(text(her.get(f"/teams/team-a/launch?gpu_class={ended.gpu_class.slug}&units=2")))["units"] == "2"
    assert filled(text(her.get("/teams/team-a/launch?units=2")))["env"] == "SECRET_PATH=/mine"
    assert filled(text(her.get("/teams/team-a/launch?kind=job")))["env"] == ""


def test_the_button_for_notebooks_begins_with_the_last_notebook(
    her: Client, ended: Workload, job: LaunchSpec, by_alice: Actor
) -> None:
    actions.launch("team-a", job, by=by_alice)
    assert filled(text(her.get("/teams/team-a/launch")))["kind"] == "job"
    home = text(her.get("/teams/team-a"))
    assert 'href="/teams/team-a/launch?kind=notebook"' in home
    values = filled(text(her.get("/teams/team-a/launch?kind=notebook")))
    assert (values["kind"], values["env"]) == ("notebook", "SECRET_PATH=/mine")


def test_what_could_not_be_taken_over_is_read_before_it_launches(her: Client) -> None:
    whole = text(her.get(f"/teams/team-a/launch?repo={REPOSITORY}"))
    assert "Launch this" in whole
    assert "Some values of the link were not used." not in whole
    other = text(her.get(f"/teams/team-a/launch?repo={REPOSITORY}&class=h100"))
    assert "Launch this" not in other
    assert "Some values of the link were not used." in other


def test_what_ended_starts_again_from_the_list(
    her: Client, ended: Workload, notebook: LaunchSpec, by_alice: Actor
) -> None:
    actions.launch("team-a", LaunchSpec(**{**vars(notebook), "name": "runs"}), by=by_alice)
    page = text(her.get("/teams/team-a/workloads"))
    assert re.findall(r'action="/teams/team-a/workloads/(\w+)/start"', page) == ["one"]
    assert her.post("/teams/team-a/workloads/one/start")["Location"] == "/teams/team-a/workloads/one"
    assert ended.runs.count() == 2
    assert not re.findall(r"/start\"", text(her.get("/teams/team-a/workloads")))


def test_the_list_offers_no_start_that_would_be_refused(
    her: Client, charlie: User, team_a: Tenant, ended: Workload, a100: GpuClass
) -> None:
    make.member(team_a, charlie, Membership.Role.VIEWER)
    his = Client()
    his.force_login(charlie)
    assert '/start"' not in text(his.get("/teams/team-a/workloads"))
    GpuClass.objects.filter(pk=a100.pk).update(terms_version=1, terms="Be kind.")
    assert '/start"' not in text(her.get("/teams/team-a/workloads"))
    GpuClass.objects.filter(pk=a100.pk).update(terms_version=0, terms="", kinds="job")
    assert '/start"' not in text(her.get("/teams/team-a/workloads"))


def test_the_list_asks_as_often_for_many_ended_ones(
    her: Client, ended: Workload, by_alice: Actor, notebook: LaunchSpec
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert her.get("/teams/team-a/workloads").status_code == 200
        return len(seen)

    one = asked()
    for number in range(3):
        more = actions.launch("team-a", LaunchSpec(**{**vars(notebook), "name": f"more-{number}"}), by=by_alice)
        more.runs.update(ended_at=timezone.now(), outcome="stopped")
    assert asked() == one


def test_a_volume_that_is_being_deleted_is_kept_and_attached(her: Client, ended: Workload, charlie: User) -> None:
    Volume.objects.update(delete_requested_at=timezone.now())
    address = "/teams/team-a/launch?volume=data"
    page = text(her.get(address))
    assert "The volume <b>data</b> is marked for deletion." in page
    assert "does not exist" not in page
    assert "Cancel deletion and attach" in page
    response = her.post("/teams/team-a/volumes/data/keep", {"then": "launch"})
    assert response["Location"] == address
    page = text(her.get(address))
    assert "is being deleted" not in page
    assert filled(page)["volume"] == "data"
    assert Volume.objects.get().delete_requested_at is None


# ---- changing the size -----------------------------------------------------------------------------------------------


def test_another_size_of_what_ended_is_declared_and_starts(her: Client, ended: Workload) -> None:
    page = text(her.get("/teams/team-a/workloads/one/change"))
    assert "Restarting stops the current run." not in page
    values = filled(page)
    assert (values["units"], values["volume"], values["env"]) == ("1", "data", "SECRET_PATH=/mine")
    response = her.post("/teams/team-a/workloads/one/change", {**values, "units": 2})
    assert response["Location"] == "/teams/team-a/workloads/one"
    run = ended.runs.get(number=2)
    assert (run.spec["units"], run.spec["claim"], run.spec["env"]) == (2, "data", [["SECRET_PATH", "/mine"]])
    verbs = Event.objects.order_by("-id").values_list("verb", flat=True)[:2]
    assert list(verbs) == ["workload.started", "workload.changed"]


def test_what_runs_is_stopped_only_when_that_is_said(her: Client, ended: Workload) -> None:
    ended.runs.update(ended_at=None, outcome="")
    page = text(her.get("/teams/team-a/workloads/one/change"))
    assert "The current run has not started; nothing is lost." in page
    ended.runs.update(started_at=timezone.now())
    page = text(her.get("/teams/team-a/workloads/one/change"))
    assert "Restarting stops the current run." in page
    assert "nothing is lost" not in page
    assert "Its memory, its kernels and all files that are not on a volume are lost." in page
    values = {**filled(page), "units": 2}
    her.post("/teams/team-a/workloads/one/change", {**values, "later": "1"})
    run = ended.runs.get()
    assert (run.stop_requested_at, run.spec["units"]) == (None, 1)
    assert Workload.objects.get().units == 2

    page = text(her.post("/teams/team-a/workloads/one/change", {**values, "units": 1}, follow=True))
    assert "one was asked to stop and starts again automatically with them." in page
    run.refresh_from_db()
    assert run.stop_requested_at is not None
    assert Workload.objects.get().units == 1


def test_a_change_that_can_never_start_changes_nothing(her: Client, ended: Workload) -> None:
    values = filled(text(her.get("/teams/team-a/workloads/one/change")))
    response = her.post("/teams/team-a/workloads/one/change", {**values, "units": 3})
    assert response.status_code == 422
    assert 'id="id_units_error"' in text(response)
    assert "3 of A100 80GB whole card requested; your team can use at most 2" in text(response)
    assert (Workload.objects.get().units, ended.runs.count()) == (1, 1)
    # Name and kind do not change, whatever is sent.
    her.post("/teams/team-a/workloads/one/change", {**values, "name": "other", "kind": "job"})
    assert Workload.objects.values_list("name", "kind").get() == ("one", "notebook")


def test_others_may_not_change_it(bob: User, charlie: User, ended: Workload, namespace_a: Namespace) -> None:
    for person, status in ((bob, 403), (charlie, 404)):
        client = Client()
        client.force_login(person)
        sent = {"gpu_class": ended.gpu_class.slug, "units": 2, "image": "minimal"}
        assert client.post("/teams/team-a/workloads/one/change", sent).status_code == status
    assert (Workload.objects.get().units, ended.runs.count()) == (1, 1)
    his = Client()
    his.force_login(bob)
    page = text(his.get("/teams/team-a/workloads/one/change"))
    assert "Only the user who launched it, owners and managers" in page
    assert "/change" not in text(his.get("/teams/team-a/workloads/one"))
    with pytest.raises(Refused, match="Only the user who launched it"):
        actions.declare(
            "team-a", LaunchSpec("one", "notebook", ended.gpu_class.slug, 2, "minimal"), by=Actor(bob, "page")
        )

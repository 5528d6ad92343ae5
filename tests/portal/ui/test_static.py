"""What browsers load: vendored files as recorded, nothing inline, nothing from elsewhere, small enough."""

import gzip
import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client

from portal.ui.statuses import STATUSES

ROOT = Path(settings.BASE_DIR)
VENDOR = ROOT / "static" / "vendor"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
OWN_FILES = [*TEMPLATES, *sorted((ROOT / "static" / "portal").iterdir())]
FIRST_PAGE_LIMIT = 150_000


def recorded() -> dict[str, str]:
    packages = json.loads((VENDOR / "manifest.json").read_text())
    assert all(package["version"] and package["licence"] for package in packages)
    return {path: digest for package in packages for path, digest in package["sha256"].items()}


def test_vendored_files_are_those_of_the_manifest() -> None:
    present = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert present == recorded()


def test_joined_files_are_their_parts() -> None:
    """After an update of django-htmx, or of a vendored file: `python3 tools/vendor.py --join`."""
    spec = importlib.util.spec_from_file_location("vendor", ROOT / "tools" / "vendor.py")
    assert spec is not None
    assert spec.loader is not None
    vendor = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(vendor)
    for target, parts in vendor.JOINED.items():
        assert (VENDOR / target).read_text() == vendor.joined(parts)


def test_every_icon_that_a_page_names_is_in_the_sprite() -> None:
    sprite = (VENDOR / "tabler" / "icons.svg").read_text()
    drawn = set(re.findall(r'<symbol id="([^"]+)"', sprite))
    named = {status.icon for status in STATUSES.values()}
    for template in TEMPLATES:
        named |= set(re.findall(r'\{% icon "([^"]+)"', template.read_text()))
        named |= set(re.findall(r'icon_name="([^"]+)"', template.read_text()))
    assert named - drawn == set()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_no_template_needs_an_inline_script_or_style(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<style\b|\sstyle=|\son[a-z]+=|javascript:", text)


@pytest.mark.parametrize("path", OWN_FILES, ids=lambda path: path.name)
def test_no_file_of_ours_loads_from_elsewhere(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"""(src|href|url|from|import)\s*[=(]?\s*["']?(https?:)?//""", text)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_what_a_page_requests_by_itself_repeats_nothing_of_its_own_address(template: Path) -> None:
    """Another site may have chosen that address. Requests of our own pages get compressed answers (ADR 56)."""
    for tag in re.findall(r"<[a-z]+\b[^<>]*\bhx-(?:get|post)=[^<>]*>", template.read_text()):
        triggers = re.search(r'hx-trigger="([^"]*)"', tag)
        if triggers and re.search(r"\b(load|every|sse|revealed|intersect)\b", triggers[1]):
            assert not re.search(r"request\.|\bquery|href", tag), tag


def test_static_files_can_be_collected_with_hashed_names(tmp_path: Path, settings) -> None:
    """Ours; that those of other packages are there as well is a test of the image, without their compression."""
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = str(tmp_path)
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    assert list(tmp_path.glob("portal/portal.*.css.gz"))


@pytest.mark.django_db
def test_the_first_page_is_at_most_150_kilobytes_on_the_wire(client: Client) -> None:
    page = client.get("/login")
    assert page.status_code == 200
    html = page.content.decode()
    loaded = {path.split("#")[0] for path in re.findall(r'(?:src|href)="/static/([^"]+)"', html)}
    loaded.add("vendor/tabler/icons.svg")  # every other page draws icons
    assert len(loaded) >= 7
    files = [Path(str(finders.find(path))).read_bytes() for path in loaded]
    assert sum(len(gzip.compress(content)) for content in [page.content, *files]) <= FIRST_PAGE_LIMIT

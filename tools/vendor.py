"""Creates static/vendor from the npm registry: `python3 tools/vendor.py`. Only this tool needs npm.

The table below lists the files, packages and versions; the result and its hashes are written to
static/vendor/manifest.json, which tests/portal/ui/test_static.py compares with the files. htmx comes inside the
django-htmx package. Files that every page loads are joined: each file of a first visit costs a request.
`--join` only makes the joined files again, without npm, after an update of django-htmx.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / "static" / "vendor"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str
    files: dict[str, str]  # path inside the package -> path below static/vendor


PACKAGES = [
    Package(
        "bootstrap",
        "5.3.8",
        "MIT",
        {
            "dist/css/bootstrap.min.css": "bootstrap/bootstrap.min.css",
            "dist/js/bootstrap.bundle.min.js": "bootstrap/bootstrap.bundle.min.js",
            "LICENSE": "bootstrap/LICENSE",
        },
    ),
    Package(
        "uplot",
        "1.6.32",
        "MIT",
        {
            "dist/uPlot.iife.min.js": "uplot/uPlot.iife.min.js",
            "dist/uPlot.min.css": "uplot/uPlot.min.css",
            "LICENSE": "uplot/LICENSE",
        },
    ),
    Package("@tabler/icons", "3.51.0", "MIT", {"LICENSE": "tabler/LICENSE"}),
]

# Outline icons of @tabler/icons, under their own names; `{% icon "copy" %}` draws one.
ICONS = """
activity alert-octagon alert-triangle arrow-back-up arrow-right ban bell check chevron-down chevron-left chevron-right
circle-check circle-dashed circle-minus circle-x clock cloud-off contrast copy cpu-2 device-desktop external-link
file-text filter git-compare help-circle history hourglass inbox info-circle key loader-2 logout moon notebook package
player-pause player-play player-stop plus power refresh search server shield-check shield-half shield-x sun
terminal-2 trash user users x
""".split()  # noqa: SIM905 (53 quoted words would be a page)


# Joined file -> its parts, in their order: paths below static/vendor, or of htmx below the static files of its package.
JOINED = {
    "joined/vendor.min.css": ["bootstrap/bootstrap.min.css", "uplot/uPlot.min.css"],
    "joined/htmx.min.js": ["django_htmx/htmx-2.min.js", "django_htmx/ext/hx-sse-2.min.js"],
}


def joined(parts: list[str]) -> str:
    htmx = files("django_htmx") / "static"
    texts = [(htmx if part.startswith("django_htmx/") else VENDOR).joinpath(part).read_text() for part in parts]
    # A script may end without a semicolon.
    return (";\n" if parts[0].endswith(".js") else "\n").join(text.strip() for text in texts) + "\n"


def joined_entry() -> dict[str, object]:
    """Writes the joined files; returns their entry of the manifest."""
    digests = {}
    for target, parts in JOINED.items():
        text = joined(parts)
        path = VENDOR / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digests[target] = hashlib.sha256(text.encode()).hexdigest()
    return {
        "name": "joined: bootstrap, uplot, htmx of django-htmx",
        "version": version("django-htmx"),
        "licence": "MIT, 0BSD (htmx)",
        "sha256": digests,
    }


def unpacked(package: Package, folder: Path) -> Path:
    """Returns the package's folder, fetched with npm's client."""
    subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{package.name}@{package.version}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    [archive] = folder.glob("*.tgz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / "package"


def without_source_map(text: str) -> str:
    """The maps are not vendored, and Django's hashed static storage refuses a reference to a missing file."""
    return re.sub(r"\n?(/\*#|//#) sourceMappingURL=\S+( \*/)?\s*$", "\n", text)


def sprite(icons: Path) -> str:
    """One SVG with a symbol per icon; stroke and size come from the class `i` in portal.css."""
    symbols = []
    for name in sorted(ICONS):
        svg = (icons / f"{name}.svg").read_text()
        body = " ".join(line.strip() for line in svg.split(">", 1)[1].rsplit("</svg>", 1)[0].splitlines())
        body = body.replace('<path stroke="none" d="M0 0h24v24H0z" fill="none" />', "").strip()
        symbols.append(f'  <symbol id="{name}" viewBox="0 0 24 24">{body}</symbol>\n')
    return f'<svg xmlns="http://www.w3.org/2000/svg">\n{"".join(symbols)}</svg>\n'


def main() -> None:
    record = VENDOR / "manifest.json"
    manifest = []
    if "--join" in sys.argv:
        manifest = [one for one in json.loads(record.read_text()) if not one["name"].startswith("joined")]
    for package in [] if manifest else PACKAGES:
        written = {}
        with tempfile.TemporaryDirectory() as scratch:
            source = unpacked(package, Path(scratch))
            for origin, target in package.files.items():
                written[target] = without_source_map((source / origin).read_text())
            if package.name == "@tabler/icons":
                written["tabler/icons.svg"] = sprite(source / "icons" / "outline")
        for target, text in written.items():
            path = VENDOR / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        manifest.append(
            {
                "name": package.name,
                "version": package.version,
                "licence": package.licence,
                "sha256": {target: hashlib.sha256(text.encode()).hexdigest() for target, text in written.items()},
            }
        )
    manifest.append(joined_entry())
    record.write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main()

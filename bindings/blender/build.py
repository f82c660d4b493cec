"""Build the add-on: ``build.py --package PACKAGE --library FILE [--wheel WHEEL] [--platform NAME] --output FOLDER``.

Two zip files: the legacy one for Blender 3.4 to 4.1 holds a copy of the package eman and the library; the extension for
4.2 and later holds their wheel, which Blender installs. With a platform's name they are for that one, and say so.
"""

import argparse
import re
import zipfile
from pathlib import Path
from typing import Optional

ADDON = Path(__file__).with_name("eman_addon")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is built


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=Path, required=True, help="the folder of the package eman")
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--platform", help="Blender's name of the library's platform, such as windows-x64")
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    print(legacy(chosen.package, chosen.library, chosen.output, chosen.platform))
    if chosen.wheel is not None:
        print(extension(chosen.wheel, chosen.output, chosen.platform))


def legacy(package: Path, library: Path, output: Path, platform: Optional[str] = None) -> Path:
    """The zip that Blender 3.4 to 4.1 installs: one folder with everything in it."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"eman-blender-{_version()}{_suffix(platform)}-legacy.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in _files(ADDON):
            if source.name != "blender_manifest.toml":
                _add(archive, source, f"eman_addon/{source.relative_to(ADDON)}")
        for source in _files(package):
            _add(archive, source, f"eman_addon/vendor/eman/{source.relative_to(package)}")
        _add(archive, library, f"eman_addon/vendor/eman/{library.name}")
    return path


def extension(wheel: Path, output: Path, platform: Optional[str] = None) -> Path:
    """The zip that Blender 4.2 and later installs: the manifest at the top, the wheel beside it."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"eman-blender-{_version()}{_suffix(platform)}.zip"
    manifest = (ADDON / "blender_manifest.toml").read_text()
    if platform is not None:
        manifest = manifest.replace('platforms = ["linux-x64"]', f'platforms = ["{platform}"]')
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in _files(ADDON):
            if source.name != "blender_manifest.toml":
                _add(archive, source, str(source.relative_to(ADDON)))
        manifest = manifest.replace("wheels = []", f'wheels = ["./wheels/{wheel.name}"]')
        archive.writestr(zipfile.ZipInfo("blender_manifest.toml", _EPOCH), manifest)
        _add(archive, wheel, f"wheels/{wheel.name}")
    return path


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _add(archive: zipfile.ZipFile, source: Path, name: str) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(info, source.read_bytes())


def _suffix(platform: Optional[str]) -> str:
    return "" if platform is None else f"-{platform}"


def _version() -> str:
    found = re.search(r'^version = "(.+)"', (ADDON / "blender_manifest.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    main()

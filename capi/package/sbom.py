"""Write what a library is made of: ``sbom.py LIBRARY --version VERSION --sbom FILE --notices FILE``.

The modules are those that Go recorded in the library itself. The bill of materials is CycloneDX JSON; the notices are
their licences, which have to go with every copy.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import subprocess
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--sbom", type=Path, required=True)
    parser.add_argument("--notices", type=Path, required=True)
    chosen = parser.parse_args()
    recorded = json.loads(_go("version", "-m", "-json", str(chosen.library.resolve())))
    modules = [module.get("Replace", module) for module in recorded.get("Deps", [])]
    chosen.sbom.write_text(bill(chosen.library, chosen.version, recorded, modules))
    chosen.notices.write_text(notices(modules))


def bill(library: Path, version: str, recorded: dict, modules: list[dict]) -> str:
    """The bill of materials, the same bytes whenever it is written for the same library."""
    content = library.read_bytes()
    digest = hashlib.sha256(content)
    root = Component(
        name="libeman",
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref="libeman",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest.hexdigest())],
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        properties=[Property(name=f"go:build:{s['Key']}", value=s["Value"]) for s in recorded["Settings"]],
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digest.hexdigest()))
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), timezone.utc)
    bom.metadata.component = root
    parts = [_module(m["Path"], m["Version"], m["Sum"]) for m in modules]
    parts.append(_module("std", recorded["GoVersion"].removeprefix("go")))
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(root, parts)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _module(path: str, version: str, checksum: str = "") -> Component:
    """A Go module; its checksum is go.sum's, of all of its files."""
    namespace, _, name = path.rpartition("/")
    purl = PackageURL("golang", namespace, name, version)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=base64.b64decode(checksum[3:]).hex())] if checksum else []
    return Component(name=path, version=version, purl=purl, bom_ref=str(purl), hashes=hashes)


def notices(modules: list[dict]) -> str:
    """The licences of everything of others that is linked into the library."""
    parts = [("Go", Path(_go("env", "GOROOT").strip()) / "LICENSE")]
    for module in modules:
        folder = Path(_go("list", "-m", "-f", "{{.Dir}}", module["Path"]).strip())
        parts += [(module["Path"], path) for path in sorted(folder.glob("LICENSE*"))]
        parts += [(module["Path"], path) for path in sorted(folder.glob("THIRD_PARTY*/*"))]
    rule = "=" * 78
    return "\n".join(f"{rule}\n{name}: {path.name}\n{rule}\n\n{path.read_text().strip()}\n" for name, path in parts)


def _go(*arguments: str) -> str:
    return subprocess.run(["go", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()

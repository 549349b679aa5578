# SPDX-License-Identifier: MIT
"""The SBOM of a release, SPDX 2.3 in JSON.

Its packages are the archive of the source, each Debian package made from that,
the packages these depend on, with the version of the build if the .buildinfo
has it, the shared libraries that their programs need, and the sources that
are linked into a program (Built-Using).

The SBOM follows from the other files of the release, but for one thing: which
package has a library. It is true if it can be made again from them.
"""

import datetime
import hashlib
import json
import re
import subprocess

from release_debs import Refused

NOWHERE = "NOASSERTION"
DOCUMENT = "SPDXRef-DOCUMENT"
SOURCE = "SPDXRef-source"


def _id(kind, name):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def _package(spdx_id, name, **more):
    return {"SPDXID": spdx_id, "name": name, "downloadLocation": NOWHERE,
            "filesAnalyzed": False, "licenseConcluded": NOWHERE, **more}


def _ours(spdx_id, name, version, file, sha256):
    return _package(spdx_id, name, versionInfo=version, packageFileName=file,
                    checksums=[{"algorithm": "SHA256",
                                "checksumValue": sha256}],
                    licenseConcluded="MIT", licenseDeclared="MIT",
                    supplier="Organization: refrain")


def _purl(name, version=None, arch=None):
    locator = f"pkg:deb/debian/{name}".replace("+", "%2B")
    if version:
        locator += "@" + version.replace("+", "%2B")
    if arch:
        locator += "?arch=" + arch
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
             "referenceLocator": locator}]


def _dependency(kind, name, version):
    arch = "source" if kind == "source" else None
    found = _package(_id(kind, name), name,
                     externalRefs=_purl(name, version, arch))
    if version:
        found["versionInfo"] = version
    return found


class _Document:
    """Packages by their identifiers, and what relates them."""

    def __init__(self):
        self.packages = {}
        self.relations = []

    def add(self, package):
        self.packages[package["SPDXID"]] = package

    def relate(self, subject, how, other, comment=None):
        relation = {"spdxElementId": subject, "relationshipType": how,
                    "relatedSpdxElement": other}
        if comment:
            relation["comment"] = comment
        if relation not in self.relations:
            self.relations.append(relation)


def _libraries_of(debs):
    """The packages of a release that have a library, by its name."""
    return {name: deb.package for deb in debs for name in deb.libraries}


def installed_homes(debs):
    """Which packages of this system, that a deb depends on, have the other
    libraries its programs need."""
    ours = _libraries_of(debs)
    homes = {}
    for deb in debs:
        depends = {name for _, names in deb.depends for name in names}
        for library in sorted(deb.needed - set(ours) - set(homes)):
            said = subprocess.run(["dpkg-query", "-S", "*/" + library],
                                  capture_output=True, text=True, check=False)
            having = {re.split(r"[:,]", line)[0]
                      for line in said.stdout.splitlines()}
            if not having & depends:
                raise Refused(f"{deb.file}: none of the packages it depends "
                              f"on has {library}")
            homes[library] = min(having & depends)
    return homes


def homes_in(sbom):
    """Those of an SBOM."""
    names = {package["SPDXID"]: package["name"]
             for package in sbom["packages"]}
    return {names.get(relation["spdxElementId"]):
            names.get(relation["relatedSpdxElement"])
            for relation in sbom["relationships"]
            if relation["relationshipType"] == "CONTAINED_BY"}


def _add_deb(document, deb, debs, homes, installed):
    ours = {other.package: _id("deb", other.package) for other in debs}
    this = ours[deb.package]
    document.relate(DOCUMENT, "DESCRIBES", this)
    document.relate(this, "GENERATED_FROM", SOURCE)
    for clause, names in deb.depends:
        for name in names:
            if name not in ours:
                document.add(_dependency("package", name, installed.get(name)))
            document.relate(this, "DEPENDS_ON",
                            ours.get(name, _id("package", name)), clause)
    depends = {name for _, names in deb.depends for name in names}
    for library in sorted(deb.needed):
        home = homes.get(library)
        if home not in depends | {deb.package}:
            raise Refused(
                f"{deb.file}: it needs {library}, but does not depend on "
                f"{home or 'a package that has it'}")
        spdx_id = _id("library", library)
        document.add(_package(spdx_id, library,
                              primaryPackagePurpose="LIBRARY"))
        document.relate(this, "DYNAMIC_LINK", spdx_id)
        document.relate(spdx_id, "CONTAINED_BY",
                        ours.get(home, _id("package", home)))
    if deb.static and not deb.built_using:
        raise Refused(f"{deb.file}: {deb.static[0]} is linked statically, but "
                      "the package has no Built-Using")
    for clause, names in deb.built_using:
        version = re.search(r"\(= ([^)]+)\)", clause)
        document.add(_dependency("source", names[0], version and version[1]))
        document.relate(this, "STATIC_LINK", _id("source", names[0]), clause)


def make(version, tarball, debs, buildinfo, homes):
    """The SBOM. tarball: its name and SHA-256. homes: which package has a
    library that is not of the release."""
    if buildinfo.epoch is None:
        raise Refused(f"{buildinfo.file}: it has no SOURCE_DATE_EPOCH")
    homes = {**homes, **_libraries_of(debs)}
    document = _Document()
    document.add(_ours(SOURCE, "refrain", version, *tarball))
    document.relate(DOCUMENT, "DESCRIBES", SOURCE)
    for deb in debs:
        package = _ours(_id("deb", deb.package), deb.package, deb.version,
                        deb.file, deb.sha256)
        package["externalRefs"] = _purl(deb.package, deb.version, deb.arch)
        document.add(package)
    for deb in debs:
        _add_deb(document, deb, debs, homes, buildinfo.installed)
    sums = "".join(deb.sha256 for deb in debs) + tarball[1]
    created = datetime.datetime.fromtimestamp(buildinfo.epoch,
                                              datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": f"refrain-{version}",
        "documentNamespace": f"https://refrain.invalid/spdx/refrain-{version}-"
                             + hashlib.sha256(sums.encode()).hexdigest(),
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Organization: refrain",
                                      "Tool: build-aux/release"]},
        "packages": list(document.packages.values()),
        "relationships": document.relations,
    }


def to_text(sbom):
    return json.dumps(sbom, indent=1) + "\n"


def _shown(relation, names):
    words = [names.get(relation.get("spdxElementId"), "?"),
             relation.get("relationshipType", "?"),
             names.get(relation.get("relatedSpdxElement"), "?")]
    if "comment" in relation:
        words.append("[" + relation["comment"] + "]")
    return " ".join(words)


def _package_differences(said, true):
    for spdx_id in sorted(said.keys() | true.keys()):
        one, other = said.get(spdx_id), true.get(spdx_id)
        if one is None:
            yield f"it lacks the package {other['name']}"
        elif other is None:
            yield f"the package {one['name']} is not of this release"
        else:
            for key in sorted(one.keys() | other.keys()):
                if one.get(key) != other.get(key):
                    yield (f"{key} of {other['name']} is {one.get(key)}, not "
                           f"{other.get(key)}")


def differences(said, true):
    """Lines that say where an SBOM is not the true one."""
    names = {package["SPDXID"]: package["name"]
             for package in said["packages"] + true["packages"]}
    names[DOCUMENT] = "the document"
    lines = [f"{key} is {said.get(key)}, not {true.get(key)}"
             for key in sorted(said.keys() | true.keys())
             if key not in ("packages", "relationships")
             and said.get(key) != true.get(key)]
    lines += _package_differences(
        {package["SPDXID"]: package for package in said["packages"]},
        {package["SPDXID"]: package for package in true["packages"]})
    lines += [f"it lacks: {_shown(relation, names)}"
              for relation in true["relationships"]
              if relation not in said["relationships"]]
    lines += [f"not true: {_shown(relation, names)}"
              for relation in said["relationships"]
              if relation not in true["relationships"]]
    if not lines and said != true:
        lines = ["it has something twice, or in another order"]
    return lines

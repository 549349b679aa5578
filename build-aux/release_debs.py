# SPDX-License-Identifier: MIT
"""What Debian packages and their .buildinfo say about themselves."""

import hashlib
import re
import subprocess
import tarfile
import tempfile

ELF = b"\x7fELF"
LIBRARY = re.compile(r"[^/]+\.so(\.[0-9]+)+$")


class Refused(Exception):
    """A file of a release is not what it must be; the text says why."""


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fields(text):
    """The fields of a paragraph of control data, by name. The lines of one
    that is folded are joined by newlines."""
    found = {}
    name = None
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            if name:
                found[name] += "\n" + line.strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            found[name] = value.strip()
    return found


def relations(text):
    """Depends and the like, in pairs: the clause, and the packages of it."""
    pairs = []
    for clause in re.sub(r"\s+", " ", text).split(","):
        clause = clause.strip()
        if clause:
            names = [re.match(r"[a-z0-9][a-z0-9+.-]*", part.strip()).group()
                     for part in clause.split("|")]
            pairs.append((clause, names))
    return pairs


def _elf(file):
    """The libraries that an ELF file needs, or None for a static program."""
    said = subprocess.run(["readelf", "-hldW", file], check=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                          capture_output=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
    program = re.search(r"Type: +(EXEC|DYN)", said)
    if program and not needed and "Requesting program" not in said \
            and "(SONAME)" not in said:
        return None
    return needed


class Deb:
    """A package: its control data, and what its programs are linked with."""

    def __init__(self, path):
        self.file = path.name
        self.sha256 = sha256(path)
        said = subprocess.run(["dpkg-deb", "-f", path], capture_output=True,
                              text=True, check=False)
        if said.returncode != 0:
            raise Refused(f"{self.file}: dpkg-deb cannot read it")
        control = fields(said.stdout)
        self.package = control.get("Package", "")
        self.version = control.get("Version", "")
        self.arch = control.get("Architecture", "")
        self.depends = relations(control.get("Pre-Depends", "") + "," +
                                 control.get("Depends", ""))
        self.built_using = relations(control.get("Built-Using", ""))
        self.is_debug = "Build-Ids" in control and \
            control.get("Auto-Built-Package") == "debug-symbols"
        self.needed = set()
        self.static = []
        self.libraries = set()
        if not self.is_debug:
            self._read_programs(path)

    def _read_programs(self, path):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path],
                              stdout=subprocess.PIPE) as data, \
                tarfile.open(fileobj=data.stdout, mode="r|") as tar:
            for member in tar:
                name = member.name.rsplit("/", 1)[-1]
                if LIBRARY.match(name):
                    self.libraries.add(name)
                if member.isreg():
                    self._read_program(tar.extractfile(member).read(),
                                       member.name)

    def _read_program(self, content, name):
        if not content.startswith(ELF):
            return
        with tempfile.NamedTemporaryFile() as copy:
            copy.write(content)
            copy.flush()
            needed = _elf(copy.name)
        if needed is None:
            self.static.append(name.lstrip("."))
        else:
            self.needed |= needed


class BuildInfo:
    """A .buildinfo: the packages of a build, and what it was made with."""

    def __init__(self, path):
        found = fields(path.read_text(encoding="utf-8"))
        self.file = path.name
        self.source = found.get("Source", "")
        self.version = found.get("Version", "")
        self.sums = {}
        for line in found.get("Checksums-Sha256", "").split("\n"):
            if line:
                digest, _, name = line.split()
                self.sums[name] = digest
        self.installed = {
            match[1]: match[2] for match in re.finditer(
                r"([a-z0-9+.-]+)(?::\w+)? \(= ([^)]+)\)",
                found.get("Installed-Build-Depends", ""))}
        epoch = re.search(r'SOURCE_DATE_EPOCH="(\d+)"',
                          found.get("Environment", ""))
        self.epoch = int(epoch[1]) if epoch else None

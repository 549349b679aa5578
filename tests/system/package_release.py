# SPDX-License-Identifier: MIT
"""Checks that a release of small packages is accepted, and refused after each
damage.

package_release.py RELEASE WORK: RELEASE is build-aux/release, WORK an
empty directory. Damages that a signature cannot reveal are signed again:
they are mistakes of the person who makes a release.

package_release.py --form SBOM checks only the form of an SBOM.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

release, work = sys.argv[1], pathlib.Path(sys.argv[2])
VERSION = '0.1.0'
DEB_VERSION = '0.1.0-0refrain1'
TARBALL = 'refrain-0.1.0.tar.xz'
SBOM = 'refrain-0.1.0.spdx.json'
INFO = f'refrain_{DEB_VERSION}_amd64.buildinfo'
REFRAIN = f'refrain_{DEB_VERSION}_amd64.deb'
LIBRARY = f'librefrain0_{DEB_VERSION}_amd64.deb'
DOC = f'refrain-doc_{DEB_VERSION}_all.deb'
SUMS, SIGNATURE = 'SHA256SUMS', 'SHA256SUMS.minisig'
good, debs, tree_debs = work / 'good', work / 'debs', work / 'tree-debs'


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True,
                          stdout=subprocess.DEVNULL, **more)


def sums_of(paths):
    said = subprocess.run(['sha256sum', *sorted(path.name for path in paths)],
                          cwd=paths[0].parent, check=True,
                          capture_output=True, text=True)
    return said.stdout


# -- A release -----------------------------------------------------------------

def make_key(name):
    run('minisign', '-G', '-W', '-f', '-p', work / f'{name}.pub',
        '-s', work / f'{name}.key')


def compile_c(source, output, *words):
    run('gcc', '-x', 'c', '-', '-o', output, *words, input=source.encode())


def make_deb(folder, package, arch, more, files, version=DEB_VERSION):
    top = work / 'pack' / package
    shutil.rmtree(top, ignore_errors=True)
    (top / 'DEBIAN').mkdir(parents=True)
    (top / 'DEBIAN/control').write_text(
        f'Package: {package}\nVersion: {version}\nArchitecture: {arch}\n'
        f'Maintainer: nobody <nobody@refrain.invalid>\n{more}'
        'Description: a package\n')
    for place, source in files.items():
        (top / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, top / place)
    run('dpkg-deb', '--root-owner-group', '-Znone', '-b', top,
        folder / f'{package}_{version}_{arch}.deb')


def make_packages():
    debs.mkdir()
    compile_c('int f(void) { return 1; }', work / 'librefrain.so.0',
              '-shared', '-fPIC', '-Wl,-soname,librefrain.so.0')
    os.symlink('librefrain.so.0', work / 'librefrain.so')
    compile_c('int f(void); int main(void) { return f(); }', work / 'program',
              f'-L{work}', '-Wl,--no-as-needed', '-lrefrain', '-lm')
    compile_c('int main(void) { return 0; }', work / 'alone', '-static')
    own = f'Depends: librefrain0 (= {DEB_VERSION}), '
    make_deb(debs, 'refrain', 'amd64',
             own + 'fuse3 | fuse, libc6 (>= 2.34)\n'
             'Built-Using: glibc (= 2.36-9)\n',
             {'usr/bin/refrain': work / 'program',
              'usr/libexec/refrain/refrain-hold': work / 'alone'})
    make_deb(debs, 'librefrain0', 'amd64', 'Depends: libc6 (>= 2.4)\n',
             {'usr/lib/librefrain.so.0': work / 'librefrain.so.0'})
    make_deb(debs, 'refrain-doc', 'all', '', {'usr/share/doc/x': release})
    write_info(debs)


def write_info(folder, source='refrain', version=DEB_VERSION,
               epoch='1795777200', leave_out=()):
    lines = [line for line in sums_of(list(folder.glob('*.deb'))).splitlines()
             if line.split()[1] not in leave_out]
    (folder / INFO).write_text(
        f'Format: 1.0\nSource: {source}\nBinary: librefrain0 refrain\n'
        f'Architecture: all amd64 source\nVersion: {version}\n'
        'Checksums-Sha256:\n' +
        f' {"0" * 64} 100 refrain_{version}.dsc\n' +
        ''.join(f' {line.split()[0]} 100 {line.split()[1]}\n'
                for line in lines) +
        'Installed-Build-Depends:\n libc6 (= 2.36-9+deb12u10),\n'
        ' gcc (= 4:12.2.0-3)\n'
        f'Environment:\n SOURCE_DATE_EPOCH="{epoch}"\n')


def make_tarball(path, top='refrain-0.1.0', text='text\n'):
    shutil.rmtree(work / 'source', ignore_errors=True)
    (work / 'source' / top).mkdir(parents=True)
    (work / 'source' / top / 'README').write_text(text)
    run('tar', '-C', work / 'source', '-cJf', path, top)


def options(pub='right'):
    return ['--version', VERSION, '--deb-version', DEB_VERSION,
            '--pub', work / f'{pub}.pub', '--tarball', work / TARBALL]


def make_release(folder, packages, *more):
    return subprocess.run(
        [str(word) for word in
         [release, 'make', folder, *options(), '--key', work / 'right.key',
          '--debs', packages, '--draft', *more]],
        capture_output=True, text=True, check=False)


def check(folder, *more, draft=True):
    return subprocess.run(
        [str(word) for word in
         [release, 'check', folder, *options(), '--rebuilt', tree_debs, *more]
         + ['--draft'] * draft], capture_output=True, text=True, check=False)


# -- A tree --------------------------------------------------------------------

def git(tree, *words):
    run('git', '-C', tree, '-c', 'user.name=x', '-c', 'user.email=x', *words)


def tag(tree, name, text):
    (tree / name).write_text(text)
    git(tree, 'add', '-A')
    git(tree, 'commit', '-qm', 'release: 0.1.0')
    git(tree, 'tag', '-f', 'v0.1.0')


def make_git_tree(tree):
    for folder in 'debian', 'packaging', 'python':
        (tree / folder).mkdir(parents=True)
    run('git', 'init', '-q', tree)
    tag(tree, 'debian/changelog', f'refrain ({DEB_VERSION}) unstable; x\n')
    tag(tree, 'packaging/refrain.spec', 'Name: refrain\nVersion: 0.1.0\n')
    tag(tree, 'python/pyproject.toml', 'version = "0.1.0"\n')
    tag(tree, 'NEWS.md', '# News\n\n## 0.1.0 (1 May 2027)\n\n'
        '## 0.0.1 (not released yet)\n')


def ready(tree, key='right'):
    return subprocess.run(
        [str(word) for word in
         [release, 'ready', tree / 'out', *options(), '--tree', tree,
          '--key', work / f'{key}.key']],
        capture_output=True, text=True, check=False)


# -- Damages -------------------------------------------------------------------

def sign(folder, key='right', comment='refrain 0.1.0 draft', file=SUMS):
    run('minisign', '-S', '-m', folder / file, '-x', folder / SIGNATURE,
        '-s', work / f'{key}.key', '-t', comment)


def reseal(folder):
    (folder / SUMS).write_text(sums_of(
        [path for path in folder.iterdir()
         if path.name not in (SUMS, SIGNATURE)]))
    sign(folder)


def flip(name):
    def damage(folder):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)
    return damage


def cut(name):
    def damage(folder):
        os.truncate(folder / name, (folder / name).stat().st_size - 1)
    return damage


def remove(name):
    return lambda folder: (folder / name).unlink()


def add(name, text='more\n'):
    return lambda folder: (folder / name).write_text(text)


def rename(name, new):
    return lambda folder: (folder / name).rename(folder / new)


def exchange(folder):
    os.rename(folder / REFRAIN, folder / 'x')
    os.rename(folder / LIBRARY, folder / REFRAIN)
    os.rename(folder / 'x', folder / LIBRARY)


def link(name):
    def damage(folder):
        (folder / name).rename(work / 'elsewhere')
        (folder / name).symlink_to(work / 'elsewhere')
    return damage


def replace(name, old, new):
    def damage(folder):
        text = (folder / name).read_text()
        assert old in text, old
        (folder / name).write_text(text.replace(old, new, 1))
    return damage


def sealed(damage):
    def both(folder):
        damage(folder)
        reseal(folder)
    return both


def sums_say(change):
    """Change the lines of SHA256SUMS, and sign it."""
    def damage(folder):
        lines = (folder / SUMS).read_text().splitlines(keepends=True)
        (folder / SUMS).write_text(''.join(change(lines)))
        sign(folder)
    return damage


def sbom(change):
    """Change an SBOM, and sign it."""
    def damage(folder):
        said = json.loads((folder / SBOM).read_text())
        change(said)
        (folder / SBOM).write_text(json.dumps(said, indent=1) + '\n')
        reseal(folder)
    return damage


def package(said, name):
    return next(found for found in said['packages'] if found['name'] == name)


def set_in(name, **more):
    return sbom(lambda said: package(said, name).update(more))


def drop_relation(how):
    def change(said):
        said['relationships'].remove(next(
            found for found in said['relationships']
            if found['relationshipType'] == how))
    return sbom(change)


def add_dependency(said):
    said['packages'].append({**package(said, 'libc6'), 'name': 'libevil1',
                             'SPDXID': 'SPDXRef-package-libevil1'})
    said['relationships'].append({
        'spdxElementId': 'SPDXRef-deb-refrain', 'relationshipType':
        'DEPENDS_ON', 'relatedSpdxElement': 'SPDXRef-package-libevil1'})


def moved_library(said):
    found = next(found for found in said['relationships']
                 if found['relationshipType'] == 'CONTAINED_BY'
                 and found['spdxElementId'].endswith('libm.so.6'))
    found['relatedSpdxElement'] = 'SPDXRef-library-libc.so.6'


def other_deb(control, name='refrain-doc', arch='all', version=DEB_VERSION,
              files=None, file=None):
    """Replace a package by another one, in the .buildinfo, too."""
    def damage(folder):
        old = folder / f'{name}_{DEB_VERSION}_{arch}.deb'
        old.unlink()
        make_deb(folder, name, arch, control, files or {}, version)
        if file:
            (folder / f'{name}_{version}_{arch}.deb').rename(folder / file)
        write_info(folder)
        reseal(folder)
    return damage


def info(**more):
    def damage(folder):
        write_info(folder, **more)
        reseal(folder)
    return damage


def other_tarball(**more):
    def damage(folder):
        make_tarball(folder / TARBALL, **more)
        reseal(folder)
    return damage


SUM = 'its checksum is not that of SHA256SUMS'
DAMAGES = [
    # Damage the signature, or the file that it signs.
    ('no folder', shutil.rmtree, 'there is no folder'),
    ('no signature', remove(SIGNATURE), f'{SIGNATURE}: missing'),
    ('no sums', remove(SUMS), f'{SUMS}: missing'),
    ('a bit of the sums', flip(SUMS), f'{SIGNATURE}: Signature verif'),
    ('a byte less of the sums', cut(SUMS), f'{SIGNATURE}: Signature verif'),
    ('a bit of the signature', flip(SIGNATURE), f'{SIGNATURE}: '),
    ('half a signature', lambda folder: os.truncate(folder / SIGNATURE, 90),
     f'{SIGNATURE}: '),
    ('an empty signature', add(SIGNATURE, ''), f'{SIGNATURE}: '),
    ('the comment', replace(SIGNATURE, 'refrain 0.1.0', 'refrain 0.1.1'),
     f'{SIGNATURE}: Comment signature verification failed'),
    ('another key', lambda folder: sign(folder, key='wrong'),
     f'{SIGNATURE}: Signature key id in'),
    ('a signature of another file', lambda folder: sign(folder, file=SBOM),
     f'{SIGNATURE}: Signature verification failed'),
    ('an older version', lambda folder: sign(folder, comment='refrain 0.0.9'),
     f"{SIGNATURE}: it is signed as 'refrain 0.0.9', not"),
    # Damage files whose sums are signed.
    *((f'a bit of {name}', flip(name), f'{name}: {SUM}')
      for name in (TARBALL, SBOM, INFO, REFRAIN, LIBRARY, DOC)),
    *((f'a byte less of {name}', cut(name), f'{name}: {SUM}')
      for name in (TARBALL, REFRAIN)),
    *((f'no {name}', remove(name), f'{name}: missing')
      for name in (TARBALL, SBOM, INFO, REFRAIN, DOC)),
    ('an empty archive', add(TARBALL, ''), f'{TARBALL}: {SUM}'),
    ('one more file', add('more.deb'), f'more.deb: not in {SUMS}'),
    ('one more hidden file', add('.more'), f'.more: not in {SUMS}'),
    ('a directory', lambda folder: (folder / 'more').mkdir(),
     'more: not a regular file'),
    ('a pipe', lambda folder: os.mkfifo(folder / 'more'),
     'more: not a regular file'),
    ('a link to the same bytes', link(REFRAIN),
     f'{REFRAIN}: not a regular file'),
    ('linked sums', link(SUMS), f'{SUMS}: not a regular file'),
    ('another name', rename(DOC, 'refrain-doc.deb'), f'{DOC}: missing'),
    ('exchanged names', exchange, f'{LIBRARY}: {SUM}'),
    # Mistakes in a file that is signed.
    ('sums twice', sums_say(lambda lines: lines + lines[:1]),
     f'{SUMS}: it has .* twice'),
    ('sums of another form', sums_say(lambda lines: ['MD5 x\n'] + lines),
     f'{SUMS}: not a line of a checksum'),
    ('sums of a path', sums_say(
        lambda lines: lines + ['0' * 64 + '  ../refrain.key\n']),
     f'{SUMS}: not a line of a checksum'),
    ('sums that lack a file', sums_say(lambda lines: lines[1:]),
     f'not in {SUMS}'),
    ('sums of one more file', sums_say(
        lambda lines: lines + ['0' * 64 + '  z\n']), 'z: missing'),
    ('a signed file more', sealed(add('z')),
     'z: a release has no such file'),
    ('a signed package more', sealed(
        lambda folder: make_deb(folder, 'evil', 'all', '', {})),
     f'evil_{DEB_VERSION}_all.deb: its checksum is not that of {INFO}'),
    ('a package less', sealed(remove(DOC)),
     f'{DOC}: missing, but in {INFO}'),
    ('no packages', sealed(lambda folder: [
        (folder / name).unlink() for name in (REFRAIN, LIBRARY, DOC)]),
     'there is no package'),
    ('no .buildinfo', sealed(remove(INFO)), 'there are 0 files'),
    ('two .buildinfo', sealed(add('a.buildinfo')), 'there are 2 files'),
    ('a package that is none', sealed(add(DOC)),
     f'{DOC}: dpkg-deb cannot read it'),
    ('a package of another build', sealed(
        lambda folder: make_deb(folder, 'refrain-doc', 'all',
                                'Section: doc\n', {})),
     f'{DOC}: its checksum is not that of {INFO}'),
    ('a package of another name', other_deb('', file='doc.deb'),
     f'doc.deb: it is {DOC}'),
    ('a package of another version', other_deb('', version='0.1.1-1'),
     'refrain-doc_0.1.1-1_all.deb: its version is not'),
    ('a .buildinfo of another source', info(source='evil'),
     f"{INFO}: it is of 'evil'"),
    ('a .buildinfo of another version', info(version='0.2.0-1'),
     'the packages have the version 0.2.0-1'),
    ('a .buildinfo of another revision', info(version='0.1.0-0refrain2'),
     f'{INFO}: it is of 0.1.0-0refrain2, and the tree of'),
    ('a .buildinfo that lacks a package', info(leave_out=[DOC]),
     f'{DOC}: its checksum is not that of'),
    ('a .buildinfo without a time', info(epoch=''),
     f'{INFO}: it has no SOURCE_DATE_EPOCH'),
    ('an archive that is none', sealed(add(TARBALL)),
     f'{TARBALL}: it is not an archive'),
    ('an archive of other files', other_tarball(top='refrain-0.1.1'),
     f'{TARBALL}: its files are not all in refrain-0.1.0/'),
    # Damage the SBOM.
    ('no SBOM', sealed(remove(SBOM)), f'{SBOM}: missing'),
    ('an SBOM of another name', sealed(rename(SBOM, 'sbom.spdx.json')),
     'sbom.spdx.json: a release has no such file'),
    ('an SBOM that is none', sealed(add(SBOM, '[]')), 'it is not an SBOM'),
    ('an SBOM in another form', sealed(cut(SBOM)),
     'it is not written as'),
    ('half an SBOM', sealed(lambda folder: os.truncate(folder / SBOM, 500)),
     'it is not an SBOM'),
    ('another form', sbom(lambda said: said.update(spdxVersion='SPDX-2.2')),
     'spdxVersion is SPDX-2.2, not SPDX-2.3'),
    ('another date', sbom(lambda said: said['creationInfo'].update(
        created='2027-01-01T00:00:00Z')), 'creationInfo is .*2027.*, not'),
    ('a date of the build', info(epoch='1795777201'),
     'creationInfo is .*:00Z.*, not .*:01Z'),
    ('another version of a package', set_in('refrain', versionInfo='0.1.1'),
     'versionInfo of refrain is 0.1.1, not 0.1.0'),
    ('another version of a dependency', set_in('libc6', versionInfo='2.35-1'),
     r'versionInfo of libc6 is 2.35-1, not 2.36-9\+deb12u10'),
    ('another version of a linked source', set_in('glibc', versionInfo='2.35'),
     'versionInfo of glibc is 2.35, not 2.36-9'),
    ('another checksum', set_in('librefrain0', checksums=[]),
     'checksums of librefrain0 is'),
    ('another licence', set_in('refrain', licenseDeclared='GPL-2.0-only'),
     'licenseDeclared of refrain is GPL-2.0-only, not MIT'),
    ('a dependency less', sbom(
        lambda said: said['packages'].remove(package(said, 'fuse3'))),
     'it lacks the package fuse3'),
    ('a dependency more', sbom(add_dependency),
     'the package libevil1 is not of this release'),
    ('a library in no package', sbom(moved_library),
     'it needs libm.so.6, but does not depend on libc.so.6'),
    *((f'no {how}', drop_relation(how), f'it lacks: .*{how}')
      for how in ('DESCRIBES', 'GENERATED_FROM', 'DEPENDS_ON',
                  'DYNAMIC_LINK', 'STATIC_LINK')),
    ('a library of nobody', drop_relation('CONTAINED_BY'),
     'does not depend on a package that has it'),
    ('a relation twice', sbom(lambda said: said['relationships'].append(
        said['relationships'][0])), 'it has something twice'),
    ('a new dependency', other_deb('Depends: libc6, libevil1\n'),
     'it lacks the package libevil1'),
    ('another constraint', other_deb(
        'Depends: libc6 (>= 2.36)\n', 'librefrain0', 'amd64',
        files={'usr/lib/librefrain.so.0': work / 'librefrain.so.0'}),
     r'not true: librefrain0 DEPENDS_ON libc6 \[libc6 \(>= 2.4\)\]'),
    ('a static program without a source', other_deb(
        '', files={'usr/bin/alone': work / 'alone'}),
     'usr/bin/alone is linked statically, but'),
    ('a library without a dependency', other_deb(
        '', files={'usr/bin/x': work / 'program'}),
     'it needs libc.so.6, but does not depend on libc6'),
    ('an archive of other bytes', other_tarball(text='other\n'),
     'checksums of refrain is'),
]
# Checks with other options of the program.
OPTIONS = [
    ('a draft', ['draft=False'],
     "it is signed as 'refrain 0.1.0 draft', not as 'refrain 0.1.0'"),
    ('another public key', ['--pub', work / 'wrong.pub'],
     f'{SIGNATURE}: Signature key id in'),
    ('no public key', ['--pub', work / 'none.pub'], 'there is no public key'),
    ('an archive of another tree', ['--tarball', release],
     f'{TARBALL}: the tree makes another archive'),
]
REBUILT = [
    ('another package', flip(DOC), f'{DOC}: the tree makes another one'),
    ('a package less', remove(DOC), f'{DOC}: the tree does not make it'),
    ('a package more', add('more_1_all.deb'),
     'more_1_all.deb: the tree makes it, but the release lacks it'),
]
MAKING = [
    ('packages that are not there', remove(INFO), 'there are 0 files'),
    ('packages of another archive', add('refrain_0.1.0.orig.tar.xz'),
     'has packages of another archive'),
    ('another version', lambda folder: [
        (folder / name).unlink() for name in (REFRAIN, LIBRARY, DOC)] +
     [make_deb(folder, 'refrain', 'all', '', {}, '0.2.0-1')],
     'the packages have the version 0.2.0-1'),
    ('a library of no dependency', lambda folder: make_deb(
        folder, 'refrain-doc', 'all', 'Depends: libc6\n',
        {'usr/bin/x': work / 'program'}),
     'it needs librefrain.so.0, but does not depend on librefrain0'),
    ('libm in no dependency', lambda folder: make_deb(
        folder, 'refrain-doc', 'all', 'Depends: fuse3\n',
        {'usr/bin/x': work / 'program'}),
     'none of the packages it depends on has lib'),
]

READY = [
    ('changes', add('NEWS.md'), 'the tree has changes'),
    ('another commit', lambda tree: git(tree, 'commit', '-qm', 'x',
                                        '--allow-empty'),
     'the commit has no tag v0.1.0'),
    ('an older spec', lambda tree: tag(
        tree, 'packaging/refrain.spec', 'Version: 0.0.9\n'),
     "packaging/refrain.spec lacks 'Version: 0.1.0'"),
    ('an older module', lambda tree: tag(
        tree, 'python/pyproject.toml', 'version = "0.1.0.dev"\n'),
     'python/pyproject.toml lacks \'version = "0.1.0"\''),
    ('news of later', lambda tree: tag(
        tree, 'NEWS.md', '# News\n\n## 0.1.0 (not released yet)\n\nx\n'),
     "NEWS.md says 'not released yet'"),
    ('an entry of later', lambda tree: tag(
        tree, 'debian/changelog', f'refrain ({DEB_VERSION}) UNRELEASED; x\n'),
     'debian/changelog says UNRELEASED'),
    ('a folder', lambda tree: (tree / 'out').mkdir(), 'exists: remove it'),
]

refused = 0


def refuses(what, said, line):
    """Check that the program fails and prints at least one line, each in a
    known form, but no traceback."""
    global refused
    lines = said.stderr.splitlines()
    if said.returncode != 1 or not lines or any(
            not re.match('release(-check)?: ', found) for found in lines):
        sys.exit(f'FAILED: {what}: {said.returncode}: {said}')
    if not any(re.search(line, found) for found in lines):
        sys.exit(f'FAILED: {what}: {said.stderr}, not {line}')
    refused += 1


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def damaged(source, damage):
    folder = shutil.copytree(source, fresh(work / 'damaged'), symlinks=True)
    damage(folder)
    return folder


def check_form(sbom_file):
    """Check the rules of the SPDX specification for this kind of SBOM."""
    said = json.loads(pathlib.Path(sbom_file).read_text())
    ids = [found['SPDXID'] for found in said['packages']]
    assert len(ids) == len(set(ids)), ids
    for spdx_id in ids:
        assert re.fullmatch('SPDXRef-[A-Za-z0-9.-]+', spdx_id), spdx_id
    ids.append(said['SPDXID'])
    for relation in said['relationships']:
        assert relation['spdxElementId'] in ids, relation
        assert relation['relatedSpdxElement'] in ids, relation
    for found in said['packages']:
        assert found['name'] and found['downloadLocation'], found
        assert found['filesAnalyzed'] is False, found
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ',
                        said['creationInfo']['created'])
    assert ' ' not in said['documentNamespace']
    return said


def check_sbom():
    """Check that the SBOM has all that the packages of this test have, and
    nothing else."""
    said = check_form(good / SBOM)
    versions = {found['name']: found.get('versionInfo')
                for found in said['packages']
                if found['SPDXID'] != 'SPDXRef-source'}
    want = {'refrain': DEB_VERSION, 'librefrain0': DEB_VERSION,
            'refrain-doc': DEB_VERSION, 'libc6': '2.36-9+deb12u10',
            'glibc': '2.36-9', 'fuse3': None, 'fuse': None,
            'libc.so.6': None, 'libm.so.6': None, 'librefrain.so.0': None}
    assert versions == want, versions
    names = {found['SPDXID']: found['name'] for found in said['packages']}
    related = {(names.get(found['spdxElementId']), found['relationshipType'],
                names[found['relatedSpdxElement']])
               for found in said['relationships']}
    for relation in (('refrain', 'DEPENDS_ON', 'librefrain0'),
                     ('refrain', 'DEPENDS_ON', 'fuse'),
                     ('refrain', 'DYNAMIC_LINK', 'libm.so.6'),
                     ('refrain', 'STATIC_LINK', 'glibc'),
                     ('libm.so.6', 'CONTAINED_BY', 'libc6'),
                     ('librefrain.so.0', 'CONTAINED_BY', 'librefrain0')):
        assert relation in related, relation


def check_ready():
    make_git_tree(work / 'tree')
    said = ready(work / 'tree')
    if said.returncode != 0:
        sys.exit(f'FAILED: release ready: {said.stderr}')
    refuses('no key', ready(work / 'tree', key='none'), 'no secret key')
    for what, damage, line in READY:
        refuses(what, ready(damaged(work / 'tree', damage)), line)


def main():
    make_key('right')
    make_key('wrong')
    make_tarball(work / TARBALL)
    make_packages()
    shutil.copytree(debs, tree_debs)
    said = make_release(good, debs)
    if said.returncode != 0:
        sys.exit(f'FAILED: release make: {said.stderr}')
    check_sbom()
    check_ready()
    # A copy in another place, with other times, is the same release.
    copy = shutil.copytree(good, work / 'a copy', copy_function=shutil.copyfile)
    run('chmod', '-R', 'a-w', copy)
    for folder in good, copy:
        said = check(folder)
        if said.returncode != 0:
            sys.exit(f'FAILED: release check: {said.stderr}')
    refuses('a folder that is there', make_release(good, debs), 'exists')
    for what, damage, line in DAMAGES:
        refuses(what, check(damaged(good, damage)), line)
    for what, more, line in OPTIONS:
        draft = more != ['draft=False']
        refuses(what, check(good, *(more if draft else []), draft=draft), line)
    for what, damage, line in REBUILT:
        refuses(what, check(good, '--rebuilt', damaged(tree_debs, damage)),
                line)
    for what, damage, line in MAKING:
        refuses(what, make_release(fresh(work / 'made'), damaged(
            debs, damage)), line)
    print(f'{refused} damages were refused')


if release == '--form':
    check_form(work)
else:
    main()

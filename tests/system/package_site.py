# SPDX-License-Identifier: MIT
"""Checks every reference in the pages of a site.

package_site.py SITE MANUALS: checks that each link leads to a file of the
site and an anchor in it, and that pages load nothing from other servers.
MANUALS is a folder with manual pages; each of them must have a page.
package_site.py --self-test checks that errors are found.
"""

import html.parser
import pathlib
import re
import sys
import tempfile
import urllib.parse

# Attributes whose targets a browser loads by itself.
LOADED = {('img', 'src'), ('script', 'src'), ('iframe', 'src'),
          ('source', 'src'), ('source', 'srcset'), ('img', 'srcset'),
          ('object', 'data'), ('embed', 'src'), ('video', 'src'),
          ('audio', 'src'), ('link', 'href'), ('use', 'href'),
          ('form', 'action'), ('use', 'xlink:href'), ('image', 'href'),
          ('image', 'xlink:href')}
CSS_URL = re.compile(r'url\(\s*["\']?([^"\')]*)|@import\s+["\']([^"\']*)')
# A script may load the URLs that it contains.
SCRIPT_URL = re.compile(r'["\'`](https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^"\'`]*')


class Page(html.parser.HTMLParser):
    """Collects the anchors of a page, and its references."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []
        self.loaded = []
        self.scripts = []
        self.in_script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            value = value or ''
            if name == 'id' or (tag == 'a' and name == 'name'):
                self.anchors.add(value)
            elif name == 'style':
                self.loaded += css_urls(value)
            elif (tag, name) in LOADED:
                self.loaded.append(value)
            elif (tag, name) == ('a', 'href'):
                self.links.append(value)
        self.in_script = tag == 'script'

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if self.in_script:
            self.scripts.append(data)


def css_urls(text):
    return [one or other for one, other in CSS_URL.findall(text)]


def read(path):
    return path.read_text(encoding='utf-8', errors='replace')


class Site:
    def __init__(self, top):
        self.top = top
        self.pages = {path.relative_to(top): Page(read(path))
                      for path in sorted(top.rglob('*.html'))}
        self.wrong = []

    def complain(self, path, text):
        self.wrong.append(f'{path}: {text}')

    def check_target(self, path, link):
        """Check a reference within the site, from the file at `path`."""
        parts = urllib.parse.urlsplit(link)
        where = urllib.parse.unquote(parts.path)
        if where.startswith('/'):
            # 404.html is shown for any path, so its links are absolute.
            target = pathlib.PurePosixPath(where.lstrip('/'))
        else:
            target = path.parent / where if where else path
        target = pathlib.PurePosixPath(
            *(self.top / target).resolve().relative_to(
                self.top.resolve()).parts)
        if (self.top / target).is_dir():
            target /= 'index.html'
        if not (self.top / target).is_file():
            self.complain(path, f'{link}: there is no such file')
        elif parts.fragment and target in map(pathlib.PurePosixPath,
                                              self.pages):
            page = self.pages[pathlib.Path(target)]
            if urllib.parse.unquote(parts.fragment) not in page.anchors:
                self.complain(path, f'{link}: there is no such anchor')

    def check_loaded(self, path, link):
        if link.startswith('data:'):
            return
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            self.complain(path, f'{link}: it is loaded from elsewhere')
        else:
            self.check_target(path, parts.path or link)

    def check_link(self, path, link):
        parts = urllib.parse.urlsplit(link)
        if parts.scheme in ('http', 'https', 'mailto'):
            return
        if parts.scheme or parts.netloc:
            self.complain(path, f'{link}: a link of that kind')
        elif link != '#':
            self.check_target(path, link)

    def check_script(self, path, text):
        for match in SCRIPT_URL.finditer(text):
            self.complain(path, f'{match[0]}: a script may load it')

    def check(self):
        for path, page in self.pages.items():
            for link in page.loaded:
                self.check_loaded(path, link)
            for link in page.links:
                self.check_link(path, link)
            for text in page.scripts:
                self.check_script(path, text)
        for path in sorted(self.top.rglob('*')):
            here = path.relative_to(self.top)
            if path.suffix in ('.css', '.svg'):
                for link in css_urls(read(path)):
                    if not (path.suffix == '.svg' and link.startswith('#')):
                        self.check_loaded(here, link)
            if path.suffix == '.svg':
                for link in Page(read(path)).loaded:
                    if not link.startswith('#'):
                        self.check_loaded(here, link)
            if path.suffix == '.js':
                self.check_script(here, read(path))


def self_test():
    """Check that each of these errors is found, and that nothing right is
    reported."""
    right = ('<h1 id="top">x</h1><a href="#top">x</a><a href="b.html#y">x</a>'
             '<a href="https://example.com">x</a><img src="data:,x">')
    wrong = {
        '<a href="c.html">': 'c.html: there is no such file',
        '<a href="b.html#z">': 'b.html#z: there is no such anchor',
        '<a href="#nowhere">': '#nowhere: there is no such anchor',
        '<a href="javascript:x()">': 'a link of that kind',
        '<img src="c.png">': 'c.png: there is no such file',
        '<img src="//example.com/x">': 'loaded from elsewhere',
        '<script src="https://example.com/x.js"></script>':
            'loaded from elsewhere',
        '<script>load("https://example.com/x")</script>':
            'a script may load it',
        '<p style="background: url(https://example.com/x)">':
            'loaded from elsewhere',
    }
    for text, line in {'': None, **wrong}.items():
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            (top / 'b.html').write_text('<p id="y">')
            (top / 'a.html').write_text(right + text)
            site = Site(top)
            site.check()
            found = [one for one in site.wrong if line and line in one]
            if len(site.wrong) != (line is not None) or \
                    len(found) != len(site.wrong):
                sys.exit(f'FAILED: {text}: {site.wrong}')


def main():
    top, manuals = map(pathlib.Path, sys.argv[1:])
    site = Site(top)
    site.check()
    for path in sorted(manuals.glob('*.[1-8]')):
        if pathlib.Path('man', path.name + '.html') not in site.pages:
            site.complain(path.name, 'it has no page')
    links = sum(len(page.links) + len(page.loaded)
                for page in site.pages.values())
    if site.wrong:
        sys.exit('\n'.join(site.wrong))
    print(f'{len(site.pages)} pages, {links} references')


if sys.argv[1:] == ['--self-test']:
    self_test()
else:
    main()

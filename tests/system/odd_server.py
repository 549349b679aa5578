# SPDX-License-Identifier: MIT
"""A web server with odd habits. It prints its port, and ends when its standard
input ends.

The first part of a path is the habit, and each habit has the same files:
"big" (9 MiB) and "small". Habits that begin with "html" have an index
without sizes, the others one in JSON. "bucket" is a bucket of a store that
lists the key "a" too late. "dav" has WebDAV, which fails at first, and one
more directory. "html-ill" also has files that it answers only with errors,
"html-down" has only such files. "html-two" has a directory of each kind;
after a request for /html-two/break, all of its files are errors. Requests
are printed to standard error.
"""
import gzip
import http.server
import json
import os
import re
import socketserver
import sys
import threading
import time
import urllib.parse

FILES = {'big': bytes(range(256)) * 4096 * 9, 'small': b'small' * 2000}
TIME = 'Sun, 09 Sep 2001 01:46:40 GMT'
# The address of a redirect, or the statuses of answers before the server gives
# the file.
ILL = {'ill-500': 500, 'ill-400': 400, 'ill-416': 416,
       'ill-loop': '/html-ill/ill-loop', 'ill-dead': 'http://127.0.0.1:1/'}
DOWN = ['down-%02d' % i for i in range(40)]
broken = []
ill_asked = {}  # number of requests for each of these
flaked = []  # requests for the habit of that name
asked_dav = {}  # number of requests for each directory of "dav"
DAV = ('<D:multistatus xmlns:D="DAV:">%s</D:multistatus>',
       '<D:response><D:href>%s</D:href><D:propstat><D:prop><D:resourcetype>%s'
       '</D:resourcetype><D:getcontentlength>%d</D:getcontentlength></D:prop>'
       '</D:propstat></D:response>')
LOGIN = b'<html>please log in</html>' * 400


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_args):
        pass

    def answer(self, code, data, headers=(), chunked=False):
        self.send_response_only(code)
        for name, value in headers:
            self.send_header(name, value)
        if chunked:
            self.send_header('Transfer-Encoding', 'chunked')
        else:
            self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        if self.command == 'HEAD':
            return
        if chunked:
            data = b'%x\r\n%s\r\n0\r\n\r\n' % (len(data), data)
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def give_index(self, habit):
        if self.path == '/long/d/':
            self.answer(200, b' ' * (49 << 20),
                        [('Content-Type', 'application/json')])
            return
        if habit in ('endless', 'branching'):
            names = [{'name': name, 'type': 'directory'}
                     for name in ('de' if habit == 'branching' else 'd')]
        elif habit in ('long', 'loop-below'):
            names = [{'name': 'd', 'type': 'directory'}]
        else:
            names = [{'name': name, 'type': 'file', 'size': len(data),
                      'mtime': TIME} for name, data in FILES.items()]
        if habit == 'names':
            names += [{'name': '../up', 'type': 'file', 'size': 1,
                       'mtime': TIME},
                      {'name': 'pipe', 'type': 'other', 'size': 0,
                       'mtime': TIME}]
        if habit == 'html-ill':
            names += [{'name': name} for name in [*ILL, 'ill-for-a-while']]
        elif self.path == '/html-two/':
            names = [{'name': name} for name in ('up/', 'down/')]
        elif habit == 'html-down' or self.path == '/html-two/down/':
            names = [{'name': name} for name in DOWN]
        if habit.startswith('html'):
            text = ''.join('<a href="%s"><img></a><a href="%s">%s</a>' %
                           ((n['name'],) * 3) for n in names)
            self.answer(200, text.encode(), [('Content-Type', 'text/html')])
        else:
            self.answer(200, json.dumps(names).encode(),
                        [('Content-Type', 'application/json')])

    def give_keys(self):
        query = urllib.parse.parse_qs(self.path.partition('?')[2])
        after = query.get('start-after', [''])[0]
        keys, more = [key for key in 'abcd' if key > after], False
        if 'continuation-token' in query:
            keys = 'ad'
        elif not after:
            keys, more = 'bc', True
        text = '<IsTruncated>%s</IsTruncated>' % str(more).lower()
        if more:
            text += '<NextContinuationToken>t</NextContinuationToken>'
        for key in keys:
            text += ('<Contents><Key>%s</Key><Size>1</Size><LastModified>'
                     '2001-09-09T01:46:40.000Z</LastModified></Contents>' % key)
        text = '<ListBucketResult>%s</ListBucketResult>' % text
        self.answer(200, text.encode(), [('Content-Type', 'application/xml')])

    def give_same_key(self, token):
        text = ('<ListBucketResult><IsTruncated>true</IsTruncated>'
                '<NextContinuationToken>' + token + '</NextContinuationToken>'
                '<Contents><Key>a</Key><Size>1</Size><LastModified>'
                '2001-09-09T01:46:40.000Z</LastModified></Contents>'
                '</ListBucketResult>')
        self.answer(200, text.encode(), [('Content-Type', 'application/xml')])

    def give_endless_keys(self):
        query = urllib.parse.parse_qs(self.path.partition('?')[2])
        n = int(query.get('continuation-token', ['0'])[0])
        text = ('<ListBucketResult><IsTruncated>true</IsTruncated>'
                '<NextContinuationToken>%d</NextContinuationToken>' % (n + 1))
        for i in range(1000):
            text += ('<Contents><Key>%09d/%04d%s</Key><Size>1</Size>'
                     '</Contents>' % (n, i, 'x' * 240))
        text += '</ListBucketResult>'
        self.answer(200, text.encode(), [('Content-Type', 'application/xml')])

    def give_without_end(self, data, headers):
        self.send_response_only(206)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        try:
            self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
            while True:
                self.wfile.write(b'4\r\nmore\r\n')
                time.sleep(0.01)
        except OSError:
            self.close_connection = True

    def give_file(self, habit, data):
        headers = [] if habit == 'no-times' else [('Last-Modified', TIME)]
        asked = re.match(r'bytes=(\d+)-(\d+)', self.headers.get('Range', ''))
        if habit == 'no-ranges':
            asked = None
        if habit == 'signed' and len(self.path) < 3000:
            to = self.path + '?' + 'x' * 3000 + '/'
            self.answer(302, b'', [('Location', to)])
            return
        if habit == 'guarded':
            self.answer(302, b'', [('Location', '/login/')])
            return
        if habit in ('nowhere', 'elsewhere'):
            to = [('Location', 'ftp://127.0.0.1/')]
            self.answer(302, b'', to if habit == 'elsewhere' else [])
            return
        if habit == 'encoded':
            self.answer(200, gzip.compress(data),
                        headers + [('Content-Encoding', 'gzip')])
        elif habit == 'html-no-size':
            self.answer(200, data, headers, chunked=True)
        elif asked and habit == 'longer':
            first, last = int(asked[1]), int(asked[2])
            whole = 'bytes %d-%d/%d' % (first, last, len(data))
            self.give_without_end(data[first:last + 1],
                                  headers + [('Content-Range', whole)])
        elif asked:
            first = int(asked[1])
            last = min(int(asked[2]), len(data) - 1)
            whole = 'bytes %d-%d/%d' % (first, last, len(data))
            self.answer(206, data[first:last + 1],
                        headers + [('Content-Range', whole)])
        else:
            self.answer(200, data, headers)

    def gives_ill(self, habit, name):
        """Answer with an error like an ill server; return False if the file has
        no error."""
        n = ill_asked[name] = ill_asked.get(name, 0) + 1
        if name in DOWN or (habit == 'html-two' and broken and name):
            self.answer(500, b'')
        elif name == 'break':
            broken.append(1)
            self.answer(200, b'')
        elif name == 'ill-for-a-while' and n <= 3:
            self.answer(502, b'')
        elif name == 'ill-for-a-while':
            self.give_file(habit, FILES['small'])
        elif isinstance(ILL.get(name), int):
            self.answer(ILL[name], b'')
        elif name in ILL:
            self.answer(302, b'', [('Location', ILL[name])])
        else:
            return False
        return True

    def do_GET(self):
        # Write the line at once: print() writes each word separately, and a
        # word of another thread could come in between.
        os.write(2, b'%s %s\n' % (self.command.encode(), self.path.encode()))
        _, habit, *rest = self.path.partition('?')[0].split('/')
        name = rest[-1] if rest else ''
        if habit == 'flaky':
            flaked.append(name)
        if habit == 'round' or (habit == 'loop-below' and 'd' in rest):
            self.answer(302, b'', [('Location', '/round/?token=geheim')])
        elif habit == 'still-here':
            self.give_same_key('t')
        elif habit == 'still-moving':
            self.give_same_key('t%d' % time.monotonic_ns())
        elif habit == 'bucket':
            self.give_keys()
        elif habit == 'endless-keys':
            self.give_endless_keys()
        elif habit == 'flaky' and len(flaked) == 1:
            self.answer(502, b'')
        # libcurl repeats one request
        elif habit == 'flaky' and len(flaked) < 4:
            self.close_connection = True
        elif not name:
            self.give_index(habit)
        elif habit.startswith('html-') and self.gives_ill(habit, name):
            pass
        elif name not in FILES:
            self.answer(404, b'')
        elif self.command == 'HEAD' and habit == 'html-no-head':
            self.answer(405, b'')
        elif self.command == 'HEAD' and habit == 'html-forbids-head':
            self.answer(403, b'')
        elif self.command == 'HEAD' and habit == 'html-fails-head':
            self.answer(500, b'')
        elif self.command == 'HEAD' and habit == 'html-shy':
            self.send_response_only(200)
            self.end_headers()
        elif habit.startswith('login'):
            self.answer(200, LOGIN, [('Content-Type', 'text/html')],
                        chunked=habit == 'login')
        else:
            self.give_file(habit, FILES[name])

    do_HEAD = do_GET

    def give_dav(self):
        """At first, the server fails and closes the connection."""
        n = asked_dav[self.path] = asked_dav.get(self.path, 0) + 1
        if n == 1:
            self.answer(502, b'')
            return
        if n == 2:
            self.close_connection = True
            return
        items = [(self.path, '<D:collection/>', 0)]
        items += [(self.path + name, '', len(data))
                  for name, data in FILES.items()]
        if self.path == '/dav/':
            items.append(('/dav/d/', '<D:collection/>', 0))
        text = DAV[0] % ''.join(DAV[1] % item for item in items)
        self.answer(207, text.encode(), [('Content-Type', 'text/xml')])

    def do_PROPFIND(self):
        self.rfile.read(int(self.headers.get('Content-Length', '0')))
        if self.path.startswith('/closes/'):
            self.close_connection = True
        elif self.path.startswith('/dav/'):
            self.give_dav()
        else:
            self.answer(405, b'')


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    server = Server(('127.0.0.1', 0), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: MIT
"""Runs Swift with its S3 interface in one process, on loopback, with objects
in memory.

swift_server.py DIR   prints the port of the S3 interface when it is up; ends
                      when its standard input does.

The access key is "test:tester", the secret "testing", the region "us-east-1".
"""
import os
import sys

import eventlet
import eventlet.wsgi
eventlet.patcher.monkey_patch(thread=False)

from swift.account.server import AccountController  # noqa: E402
from swift.common import utils                      # noqa: E402
from swift.common.middleware import catch_errors, tempauth  # noqa: E402
from swift.common.middleware.s3api import s3api     # noqa: E402
from swift.common.ring import RingBuilder           # noqa: E402
from swift.common.storage_policy import POLICIES    # noqa: E402
from swift.container.server import ContainerController  # noqa: E402
from swift.obj.mem_server import ObjectController   # noqa: E402
from swift.proxy.server import Application          # noqa: E402


class Cache:
    """Stands in for memcached, which tempauth and the proxy need."""

    def __init__(self, app):
        self.app = app
        self.kept = {}

    def get(self, key, raise_on_error=False):
        return self.kept.get(key)

    def set(self, key, value, **_):
        self.kept[key] = value

    def incr(self, key, delta=1, **_):
        self.kept[key] = int(self.kept.get(key, 0)) + delta
        return self.kept[key]

    def delete(self, key, **_):
        self.kept.pop(key, None)

    def __call__(self, env, start_response):
        env['swift.cache'] = self
        return self.app(env, start_response)


def make_ring(path, port):
    builder = RingBuilder(4, 1, 1)
    builder.add_dev({'id': 0, 'region': 1, 'zone': 1, 'ip': '127.0.0.1',
                     'port': port, 'device': 'sda', 'weight': 1.0})
    builder.rebalance()
    builder.get_ring().save(path)


def quiet(*_args, **_kwargs):
    pass


def listen():
    return eventlet.listen(('127.0.0.1', 0))


def main():
    top = sys.argv[1]
    os.makedirs(os.path.join(top, 'devices', 'sda'), exist_ok=True)
    utils.HASH_PATH_SUFFIX = b'suffix'
    conf = {'swift_dir': top, 'devices': os.path.join(top, 'devices'),
            'mount_check': 'false', 'log_level': 'CRITICAL',
            'allow_account_management': 'true',
            'account_autocreate': 'true', 'bind_port': '1'}
    null = utils.get_logger({'log_level': 'CRITICAL'}, name='null')
    servers = []
    for kind, make in (('account', AccountController),
                       ('container', ContainerController),
                       ('object', ObjectController)):
        sock = listen()
        make_ring(os.path.join(top, kind + '.ring.gz'),
                  sock.getsockname()[1])
        servers.append((sock, make, kind))
    POLICIES.default.object_ring = None
    for sock, make, _ in servers:
        eventlet.spawn(eventlet.wsgi.server, sock, make(conf), log_output=False)
    app = Application(conf, logger=null)
    auth = tempauth.filter_factory(
        conf, user_test_tester='testing .admin')(app)
    s3 = s3api.filter_factory(
        conf, s3_acl='false', location='us-east-1',
        dns_compliant_bucket_names='true', check_bucket_owner='false')
    top_app = catch_errors.filter_factory(conf)(Cache(s3(auth)))
    sock = listen()
    eventlet.spawn(eventlet.wsgi.server, sock, top_app, log_output=False)
    print(sock.getsockname()[1], flush=True)
    eventlet.hubs.trampoline(sys.stdin.fileno(), read=True)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: MIT
"""swift_fill.py PORT DIR [KEYS]: puts objects into s3://bucket with boto3.

Without KEYS, the objects are the files below DIR. With KEYS, they are that
many objects with odd keys: random UTF-8 with characters that are difficult
for signatures and listings. The same files are written to DIR, to compare
them with a mount.
"""
import os
import random
import sys

import boto3
from botocore.config import Config


def put_tree(s3, top):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            s3.upload_file(path, 'bucket', os.path.relpath(path, top))


def put_odd(s3, top, keys):
    import sign_vectors  # this module is beside this script
    rng = random.Random(11)

    def put(key, body):
        s3.put_object(Bucket='bucket', Key=key, Body=body)
        path = os.path.join(top, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as out:
            out.write(body)

    for i in range(keys):
        odd = sign_vectors.make_key(rng).replace('/', '_')
        put('odd %d/%d%s' % (i % 3, i, odd), b'body %d' % i)
    for i in range(6):
        put('large/%d.bin' % i, rng.randbytes(3000001))
    s3.put_object(Bucket='bucket', Key='a//b', Body=b'hidden')


def main():
    port, top = sys.argv[1], sys.argv[2]
    s3 = boto3.client(
        's3', endpoint_url='http://127.0.0.1:' + port,
        aws_access_key_id='test:tester', aws_secret_access_key='testing',
        region_name='us-east-1',
        config=Config(s3={'addressing_style': 'path'}))
    s3.create_bucket(Bucket='bucket')
    if len(sys.argv) > 3:
        put_odd(s3, top, int(sys.argv[3]))
    else:
        put_tree(s3, top)


if __name__ == '__main__':
    main()

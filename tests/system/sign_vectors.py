# SPDX-License-Identifier: MIT
"""Signatures by botocore, for tests of refrain's signatures.

sign_vectors.py COUNT SEED prints a request a line, as sign_lines reads them:
the key in hexadecimal, a token, a query, and botocore's signature.
"""
import random
import sys
from urllib.parse import quote

import botocore.auth
import botocore.awsrequest
import botocore.credentials

MARKS = "~+=%&' "
CHARACTERS = [chr(c) for c in range(33, 127) if chr(c) not in '?#\\'] + \
    list(MARKS * 8) + list('äßéñøŁπЖשあ漢字한😀\u00a0\u0301')


def make_key(rng):
    key = ''.join(rng.choice(CHARACTERS) for _ in range(rng.randint(1, 60)))
    return key.lstrip('/') or 'k'


def sign(key, token, query):
    """Return the signature of GET /bucket/key."""
    url = 'http://127.0.0.1:8080/bucket/' + quote(key, safe='/~')
    if query:
        url += '?' + query
    request = botocore.awsrequest.AWSRequest('GET', url)
    secret = botocore.credentials.Credentials('AKID', 'sec/ret+KEY', token)

    auth = botocore.auth.S3SigV4Auth(secret, 's3', 'eu-west-1')
    # Do what add_auth() does, but for a given time.
    request.context['timestamp'] = '20260102T030405Z'
    auth._modify_request_before_signing(request)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request)


def vectors(count, seed):
    rng = random.Random(seed)
    for i in range(count):
        key = make_key(rng)
        token = 'to/ken+%d==' % i if i % 3 == 0 else None
        query = ''
        if i % 4 == 0:
            query = 'encoding-type=url&list-type=2&prefix=' + \
                quote(make_key(rng), safe='~')
        yield key, token or '', query, sign(key, token, query)


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    for key, token, query, signature in vectors(count, seed):
        print('\t'.join((key.encode().hex(), token, query, signature)))


if __name__ == '__main__':
    main()

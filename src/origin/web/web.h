/* SPDX-License-Identifier: MIT */
/* An HTTP client: loops (each a thread), parsers for XML and headers,
 * signatures and credentials. The only user of libcurl, OpenSSL and expat. */
#ifndef WEB_H
#define WEB_H

#include "origin/web/body.h"
#include "origin/web/creds.h"
#include "origin/web/web_loops.h"
#include "origin/web/http_head.h"
#include "origin/web/sign.h"
#include "origin/web/throttle.h"
#include "origin/web/url.h"
#include "origin/web/xml.h"

#endif

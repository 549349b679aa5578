/* SPDX-License-Identifier: MIT */
/*
 * An HTTP client: loops, each a thread, parsers for XML, JSON and headers,
 * signatures and credentials. The only user of libcurl, OpenSSL and expat.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "web/bytes.h"
#include "web/creds.h"
#include "web/loops.h"
#include "web/head.h"
#include "web/json.h"
#include "web/sign.h"
#include "web/throttle.h"
#include "web/url.h"
#include "web/xml.h"

#endif

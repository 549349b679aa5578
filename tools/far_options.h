/* SPDX-License-Identifier: MIT */
/* Options of every command that opens a remote source. */
#ifndef TOOLS_FAR_OPTIONS_H
#define TOOLS_FAR_OPTIONS_H

/* Rows of the options. field(f) gives the offset in the command's arguments of
 * member f of struct stack_config. */
/* clang-format off */
#define FAR_OPTIONS(field) \
	{ \
		.name = "endpoint-url", \
		.arg = "URL", \
		.help = "Use the S3 store at URL instead of AWS (default: " \
			"AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL).", \
		.kind = OPTION_TEXT, \
		.offset = field(endpoint_url), \
	}, \
	{ \
		.name = "region", \
		.arg = "REGION", \
		.help = "Region of the bucket (default: AWS_REGION, the " \
			"profile's region, or the server's answer).", \
		.kind = OPTION_TEXT, \
		.offset = field(region), \
	}, \
	{ \
		.name = "profile", \
		.arg = "NAME", \
		.help = "Use the credentials of profile NAME in ~/.aws " \
			"(default: AWS_PROFILE or 'default').", \
		.kind = OPTION_TEXT, \
		.offset = field(profile), \
	}, \
	{ \
		.name = "no-sign-request", \
		.help = "Read a public bucket without credentials.", \
		.kind = OPTION_FLAG, \
		.offset = field(no_sign_request), \
	}, \
	{ \
		.name = "requester-pays", \
		.help = "Accept charges for requests to a requester-pays " \
			"bucket.", \
		.kind = OPTION_FLAG, \
		.offset = field(requester_pays), \
	}, \
	{ \
		.name = "insecure-tls", \
		.help = "Do not verify the server's certificate.", \
		.kind = OPTION_FLAG, \
		.offset = field(insecure_tls), \
	}, \
	{ \
		.name = "http2", \
		.help = "Use HTTP/2 with https servers that support it; S3 " \
			"always uses HTTP/1.1.", \
		.kind = OPTION_FLAG, \
		.offset = field(http2), \
	}
/* clang-format on */

#endif

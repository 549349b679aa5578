/* SPDX-License-Identifier: MIT */
/* Prints what a daemon does just now, for `refrain status --debug`. No state.
 */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/fleet/request.h"
#include "command.h"
#include "common/base/size.h"
#include "status_view.h"

static void print_seconds(const char *what, const json_t *o, const char *key)
{
	(void)printf("%s%.1f s", what, (double)ask_number(o, key) / 1000);
}

static const char *bytes_of(const json_t *o, const char *key, char *buf)
{
	return size_format(ask_number(o, key), buf);
}

static void print_item(const json_t *o)
{
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	ask_print(stdout, o, "path");
	(void)printf(" [%s at %s]", bytes_of(o, "bytes", a),
		bytes_of(o, "offset", b));
}

static void print_debug_fill(const json_t *f)
{
	(void)printf("  %s, ", ask_text(f, "phase"));
	print_seconds("", f, "age_ms");
	(void)printf(", %s: ", ask_text(f, "priority"));
	print_item(f);
	(void)printf("\n    %" PRIu64 " of %" PRIu64 " pages present, %" PRIu64
		     " in flight, %" PRIu64 " wanted; %s",
		ask_number(f, "present"), ask_number(f, "pages"),
		ask_number(f, "inflight"), ask_number(f, "wanted"),
		json_is_true(json_object_get(f, "admitted"))
			? "goes to a tier"
			: "passes through");
	if (ask_number(f, "waiters") > 0) {
		(void)printf("\n    %" PRIu64 " readers wait",
			ask_number(f, "waiters"));
		print_seconds(", the first for ", f, "waits_ms");
		(void)printf(" for %" PRIu64 " bytes at %" PRIu64,
			ask_number(f, "waits_bytes"),
			ask_number(f, "waits_offset"));
	}
	if (ask_number(f, "plans") > 0 || ask_number(f, "warms") > 0)
		(void)printf("\n    %" PRIu64 " plans, %" PRIu64 " warmings",
			ask_number(f, "plans"), ask_number(f, "warms"));
	(void)putchar('\n');
}

static void print_request(const json_t *r)
{
	char a[SIZE_TEXT_MAX];

	(void)printf("  %s, ", ask_text(r, "to"));
	print_seconds("", r, "age_ms");
	print_seconds(", no bytes for ", r, "quiet_ms");
	(void)printf(", %s came: ", bytes_of(r, "got_bytes", a));
	print_item(r);
	(void)puts(json_is_true(json_object_get(r, "slow")) ? ", slow" : "");
}

static void print_plan(const json_t *p)
{
	char a[SIZE_TEXT_MAX];

	(void)printf("  reader %" PRIu64 ": %" PRIu64 " of %" PRIu64
		     " positions done, front %" PRIu64 ", looked up to %" PRIu64
		     ", step %" PRIu64 " of %.1f ms\n",
		ask_number(p, "reader"), ask_number(p, "done"),
		ask_number(p, "positions"), ask_number(p, "front"),
		ask_number(p, "cursor"), ask_number(p, "step"),
		json_number_value(json_object_get(p, "step_ms")));
	(void)printf("    %" PRIu64 " items (%s) ahead, %" PRIu64
		     " fetched, %" PRIu64 " failed\n",
		ask_number(p, "ahead_items"), bytes_of(p, "ahead_bytes", a),
		ask_number(p, "fetched_items"), ask_number(p, "failed_items"));
}

static void print_list(
	const json_t *list, uint64_t all, void (*print)(const json_t *))
{
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n; i++)
		print(json_array_get(list, i));
	if (all > n)
		(void)printf("  and %" PRIu64 " more\n", all - n);
}

void status_print_debug(const json_t *o)
{
	const json_t *phases = json_object_get(o, "phases");
	const json_t *plans = json_object_get(o, "plans");
	uint64_t staged = ask_number(phases, "staged");
	const char *name;
	json_t *n;

	(void)printf("%" PRIu64 " readers wait, %" PRIu64
		     " reads wait for memory, %" PRIu64 " look-ups and %" PRIu64
		     " listings wait for the source\n",
		ask_number(o, "readers_wait"),
		ask_number(o, "reads_wait_for_memory"),
		ask_number(o, "lookups"), ask_number(o, "listings"));
	(void)printf("requests: %" PRIu64 "\n", ask_number(o, "requests"));
	print_list(json_object_get(o, "oldest_requests"),
		ask_number(o, "requests"), print_request);
	(void)printf("fills: %" PRIu64, ask_number(o, "fills"));
	json_object_foreach((json_t *)(uintptr_t)phases, name, n)
	{
		if (json_integer_value(n) > 0)
			(void)printf(", %" JSON_INTEGER_FORMAT " %s",
				json_integer_value(n), name);
	}
	(void)putchar('\n');
	print_list(json_object_get(o, "oldest_fills"),
		ask_number(o, "fills") - staged, print_debug_fill);
	(void)printf("plans: %zu\n", json_array_size(plans));
	print_list(plans, 0, print_plan);
	(void)puts("shares of this user:");
	/* flush before a message about a share goes to standard error */
	(void)fflush(stdout);
	shares_print();
}

/* SPDX-License-Identifier: MIT */
/* Prints a systemd unit for memcached; see peers_unit.h. */
#include "peers_unit.h"

#include <stdio.h>
#include <string.h>

#include "common/base/escape.h"
#include "origin/peer/peer.h"

/* Returns the value of memcached's slab_chunk_max that makes chunks of 16 KiB.
 * `version` is for example "1.6.18". The value is in bytes before 1.6.24 and in
 * kilobytes from then on; older versions crash with the small value. Returns
 * NULL if the version cannot be parsed. */
static const char *peers_unit_chunk(const char *version)
{
	unsigned major, minor, patch;

	if (sscanf(version, "%u.%u.%u", &major, &minor, &patch) != 3 ||
		major != 1 || minor < 6)
		return NULL;
	return minor > 6 || patch >= 24 ? "16" : "16384";
}

/* Get the version of the installed memcached; "" if there is none. */
static void peers_unit_version(char *version, size_t size)
{
	FILE *f = popen("memcached -V 2>/dev/null", "re");
	char line[128];

	version[0] = '\0';
	if (!f)
		return;
	if (fgets(line, sizeof(line), f) &&
		strncmp(line, "memcached ", 10) == 0) {
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(version, size, "%.*s", (int)size - 1, line + 10);
	}
	/* the status does not matter: `version` is "" without memcached
	 */
	(void)pclose(f);
}

/* Print the address and the port of "HOST[:PORT]" as options of memcached. */
static void peers_unit_listen(const char *host)
{
	const char *colon = host ? strrchr(host, ':') : NULL;
	bool ipv6 =
		host && host[0] != '[' && colon && strchr(host, ':') != colon;
	char shown[4 * PEER_NAME_MAX + 1];

	if (host)
		(void)escape_text(shown, sizeof(shown), host);
	if (host && host[0] == '/')
		(void)printf("-s %s -a 0660", shown);
	else if (!host)
		(void)printf("-l ADDRESS:%u", PEER_DEFAULT_PORT);
	else if (ipv6 || !colon || (host[0] == '[' && colon[-1] != ']'))
		(void)printf("-l %s -p %u", shown, PEER_DEFAULT_PORT);
	else
		(void)printf("-l %s", shown);
}

void peers_unit_print(const char *host)
{
	char version[32];
	const char *chunk;

	peers_unit_version(version, sizeof(version));
	chunk = peers_unit_chunk(version);
	(void)puts("# /etc/systemd/system/refrain-peer.service\n"
		   "# Set MEMORY_MB, see that only the training network can "
		   "reach the address, then\n"
		   "#   systemctl enable --now refrain-peer\n"
		   "# A restart empties the cache of this host.");
	if (!host)
		(void)puts("# Replace ADDRESS by this host's address on that "
			   "network.");
	if (!chunk)
		(void)puts(
			"# Without slab_chunk_max, 0.75 to 0.83 of the memory "
			"is content. Add 'slab_chunk_max=16'\n"
			"# to -o for memcached 1.6.24 or later (kilobytes), "
			"'slab_chunk_max=16384' before (bytes): 0.96.");
	(void)puts("[Unit]\n"
		   "Description=Memory of a partitioned refrain cache\n"
		   "After=network-online.target\n"
		   "Wants=network-online.target\n"
		   "\n"
		   "[Service]\n"
		   "Environment=MEMORY_MB=65536");
	(void)fputs("ExecStart=memcached -M -m ${MEMORY_MB} -U 0 -B ascii ",
		stdout);
	peers_unit_listen(host);
	(void)printf(" -c 8192 -t 4 -o no_slab_reassign%s%s\n",
		chunk ? ",slab_chunk_max=" : "", chunk ? chunk : "");
	(void)puts("DynamicUser=yes\n"
		   "LimitNOFILE=16384\n"
		   "LimitCORE=0\n"
		   "NoNewPrivileges=yes\n"
		   "PrivateDevices=yes\n"
		   "ProtectHome=yes\n"
		   "ProtectSystem=strict\n"
		   "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n"
		   "Restart=on-failure\n"
		   "RestartSec=5\n"
		   "\n"
		   "[Install]\n"
		   "WantedBy=multi-user.target");
}

/* SPDX-License-Identifier: MIT */
/* Profiles in ~/.aws/credentials and ~/.aws/config, and the places to which
 * they refer: a process, the role of another profile, a web identity, an SSO
 * login. The files are read again each time, so that changes take effect. */
#include "origin/web/creds_fetch_impl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/date.h"
#include "common/base/hash.h"
#include "common/base/json.h"

#define PRINTED_MAX_BYTES ((size_t)1 << 20)
#define PROCESS_NS (10 * NS_PER_S)
/* The maximum number of roles that refer to one another; a longer chain must be
 * a loop. */
#define ROLES_DEEP 5u

/* -- Files ----------------------------------------------------------------- */

static void aws_file(
	const char *variable, const char *name, char *out, size_t size)
{
	const char *given = getenv(variable), *home = getenv("HOME");

	if (given && *given)
		(void)snprintf(out, size, "%s", given);
	else
		(void)snprintf(out, size, "%s/.aws/%s", home ? home : "", name);
}

static void credentials_file(char *out, size_t size)
{
	aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", out, size);
}

static void config_file(char *out, size_t size)
{
	aws_file("AWS_CONFIG_FILE", "config", out, size);
}

static void stamp_file(const char *path, uint64_t *stamp)
{
	struct stat st;
	int64_t words[4] = {0};

	if (stat(path, &st) == 0) {
		words[0] = st.st_mtim.tv_sec;
		words[1] = st.st_mtim.tv_nsec;
		words[2] = st.st_size;
		words[3] = (int64_t)st.st_ino;
	}
	*stamp = hash64(words, sizeof(words), *stamp);
}

uint64_t profile_stamp(void)
{
	char path[1024];
	uint64_t stamp = 1;

	credentials_file(path, sizeof(path));
	stamp_file(path, &stamp);
	config_file(path, sizeof(path));
	stamp_file(path, &stamp);
	return stamp;
}

/* -- INI ------------------------------------------------------------------- */

static char *creds_file_trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len > 0 && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* Is `text` the name `want`, with or without quotes? */
static bool is_named(char *text, const char *want)
{
	size_t len = strlen(want);

	text = creds_file_trim(text);
	if (*text == '"' || *text == '\'')
		return strncmp(text + 1, want, len) == 0 &&
			text[len + 1] == *text;
	return strcmp(text, want) == 0;
}

/* Does the line begin section `want`? It is "[profile name]", "[name]" or
 * "[sso-session name]". */
static bool is_section(char *line, const char *kind, const char *want)
{
	char *end = strchr(line, ']');
	char *name;

	if (!end)
		return false;
	*end = '\0';
	name = creds_file_trim(line + 1);
	if (*kind && strncmp(name, kind, strlen(kind)) == 0 &&
		strchr(" \t", name[strlen(kind)]))
		return is_named(name + strlen(kind), want);
	/* The kind is left out for "default", and for every name in the
	 * credentials file. */
	if (strcmp(kind, "profile") == 0 && strcmp(want, "default") != 0)
		return false;
	return strcmp(kind, "sso-session") != 0 && strcmp(name, want) == 0;
}

/* Find the value of an option. As in AWS' tools, a line that is indented more
 * than an option belongs to that option. */
static bool ini_find(char *text, const char *kind, const char *section,
	const char *name, char *out, size_t size)
{
	size_t option = SIZE_MAX; /* indentation of the last option */
	bool inside = false;

	for (char *line; (line = strsep(&text, "\n"));) {
		size_t indent = strspn(line, " \t");
		char *value;

		line = creds_file_trim(line);
		if (*line == '[') {
			inside = is_section(line, kind, section);
			option = SIZE_MAX;
		}
		if (strchr("[#;", *line) || indent > option)
			continue;
		option = indent;
		value = strpbrk(line, "=:");
		if (!inside || !value)
			continue;
		*value = '\0';
		value = creds_file_trim(value + 1);
		if (strcasecmp(creds_file_trim(line), name) != 0 ||
			strlen(value) >= size)
			continue;
		strcpy(out, value);
		return *out != '\0';
	}
	return false;
}

static bool file_find(const char *path, const char *kind, const char *section,
	const char *name, char *out, size_t size)
{
	struct bytes text = {0};
	bool found = bytes_read_file(path, &text) == 0 &&
		bytes_len(&text) > 0 &&
		ini_find(bytes_edit(&text), kind, section, name, out, size);

	wipe_bytes(&text);
	return found;
}

static const char *profile_name(const char *profile)
{
	if (!profile || !*profile)
		profile = getenv("AWS_PROFILE");
	if (!profile || !*profile)
		profile = getenv("AWS_DEFAULT_PROFILE");
	return profile && *profile ? profile : "default";
}

/* As in AWS' tools, the credentials file comes first. */
static bool setting(
	const char *profile, const char *name, char *out, size_t size)
{
	char path[1024];

	*out = '\0';
	credentials_file(path, sizeof(path));
	if (file_find(path, "", profile, name, out, size))
		return true;
	config_file(path, sizeof(path));
	return file_find(path, "profile", profile, name, out, size);
}

bool creds_profile_setting(
	const char *profile, const char *name, char *out, size_t size)
{
	return setting(profile_name(profile), name, out, size);
}

/* -- credential_process ---------------------------------------------------- */

static int read_until_end(int fd, uint64_t until_ns, struct bytes *out)
{
	char block[4096];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_now_ns();
		ssize_t n;

		if (now >= until_ns)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) <= 0)
			continue;
		n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		bytes_add(out, block, (size_t)n);
		OPENSSL_cleanse(block, (size_t)n);
		if (bytes_len(out) > PRINTED_MAX_BYTES)
			return -EFBIG;
	}
}

/* Run a command in a child process. The kernel ends it when the calling thread
 * ends: that thread waits for the child, so in this case the daemon was killed
 * or replaced. */
static int spawn_shell(const char *command, int to, pid_t *pid)
{
	pid_t daemon = getpid();

	*pid = fork();
	if (*pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == daemon && dup2(to, STDOUT_FILENO) >= 0)
			(void)execl(
				"/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return *pid < 0 ? -errno : 0;
}

static int run_process(const char *command, struct bytes *out)
{
	uint64_t until_ns = clock_now_ns() + PROCESS_NS;
	CLEANUP_FD int from = -1;
	int ends[2], status = 0, rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	rc = spawn_shell(command, ends[1], &pid);
	(void)close(ends[1]); /* the child has its own copy */
	if (rc < 0)
		return rc;
	rc = read_until_end(from, until_ns, out);
	/* Wait for the end of the process, which may close its output before.
	 */
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (rc == 0 && clock_now_ns() >= until_ns)
			rc = -ETIMEDOUT;
		if (rc < 0)
			(void)kill(pid, SIGKILL);
		(void)poll(NULL, 0, 1);
	}
	if (rc == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		rc = -ECHILD;
	return rc;
}

static int from_process(
	const char *command, struct secret *out, struct error *err)
{
	struct bytes text = {0};
	int rc = run_process(command, &text);

	if (rc == -ECHILD)
		(void)error_set(err, rc,
			"credential_process ended with an exit status that is "
			"not 0");
	else if (rc < 0)
		(void)error_set(err, rc, "credential_process failed: %m");
	else if (secret_from_text(bytes_get(&text), bytes_len(&text), out) < 0)
		rc = error_set(err, -EBADMSG,
			"credential_process printed no credentials");
	wipe_bytes(&text);
	return rc;
}

/* -- SSO ------------------------------------------------------------------- */

/* Get the path of the file in which `aws sso login` stores the token. Its name
 * is a hash of the session. */
static void sso_token_path(const char *session, char *out, size_t size)
{
	unsigned char hash[SHA_DIGEST_LENGTH] = {0};
	const char *home = getenv("HOME");
	char hex[2 * SHA_DIGEST_LENGTH + 1];

	(void)SHA1((const unsigned char *)session, strlen(session), hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	(void)snprintf(
		out, size, "%s/.aws/sso/cache/%s.json", home ? home : "", hex);
}

static int sso_token(
	const char *session, char *token, size_t size, struct error *err)
{
	char path[1024], expires[64] = "";
	struct bytes text = {0};
	int rc;

	sso_token_path(session, path, sizeof(path));
	rc = bytes_read_file(path, &text);
	if (rc == 0)
		rc = json_find(bytes_get(&text), bytes_len(&text),
			"accessToken", token, size);
	if (rc == 0)
		(void)json_find(bytes_get(&text), bytes_len(&text), "expiresAt",
			expires, sizeof(expires));
	wipe_bytes(&text);
	if (rc == 0 && *token &&
		date_parse_iso(expires) / (int64_t)NS_PER_S > time(NULL))
		return 0;
	return error_set(
		err, -EACCES, "the SSO session has ended; run 'aws sso login'");
}

static int from_sso(const char *profile, const char *ca_file,
	struct secret *out, struct error *err)
{
	char start[512], session[256], region[64], account[64], role[256];
	CLEANUP_FREE char *token = calloc(1, CREDS_TOKEN_MAX);
	struct sso sso = {token, region, account, role, ca_file};
	char path[1024];
	int rc;

	if (!setting(profile, "sso_account_id", account, sizeof(account)) ||
		!setting(profile, "sso_role_name", role, sizeof(role)))
		return -ENOENT;
	if (!token)
		return -ENOMEM;
	(void)setting(profile, "sso_region", region, sizeof(region));
	(void)setting(profile, "sso_start_url", start, sizeof(start));
	if (setting(profile, "sso_session", session, sizeof(session))) {
		config_file(path, sizeof(path));
		(void)file_find(path, "sso-session", session, "sso_region",
			region, sizeof(region));
		strcpy(start, session);
	}
	rc = sso_token(start, token, CREDS_TOKEN_MAX, err);
	if (rc == 0)
		rc = fetch_sso(&sso, out, err);
	OPENSSL_cleanse(token, CREDS_TOKEN_MAX);
	return rc;
}

/* -- Profiles -------------------------------------------------------------- */

static int from_profile(const char *profile, const char *region,
	const char *ca_file, unsigned deep, struct secret *out,
	struct error *err);

static bool static_keys(const char *profile, struct secret *out)
{
	if (!setting(profile, "aws_access_key_id", out->access_key,
		    sizeof(out->access_key)) ||
		!setting(profile, "aws_secret_access_key", out->key,
			sizeof(out->key)))
		return false;
	(void)setting(profile, "aws_session_token", out->token,
		/* "" if the profile has no token */
		sizeof(out->token));
	out->expires_s = 0;
	return true;
}

/* Get the credentials that are needed to assume the role. */
static int role_source(const char *profile, const char *region,
	const char *ca_file, unsigned deep, struct secret *out,
	struct error *err)
{
	char source[256];

	if (setting(profile, "source_profile", source, sizeof(source))) {
		/* A profile may name itself, to use its own keys. */
		if (strcmp(source, profile) == 0 && static_keys(profile, out))
			return 0;
		return from_profile(
			source, region, ca_file, deep + 1, out, err);
	}
	if (!setting(profile, "credential_source", source, sizeof(source)))
		return error_set(err, -EINVAL,
			"it has a role_arn without source_profile");
	if (strcmp(source, "EcsContainer") == 0)
		return fetch_container(ca_file, out, err);
	if (strcmp(source, "Ec2InstanceMetadata") == 0)
		return fetch_instance(out, err);
	return error_set(err, -EINVAL,
		"credential_source '%s' is not supported; use source_profile",
		source);
}

static int from_role(const char *profile, const char *arn, const char *region,
	const char *ca_file, unsigned deep, struct secret *out,
	struct error *err)
{
	char session[128], external[256], path[1024];
	struct secret source = {.token = ""};
	struct bytes token = {0};
	struct role role = {.arn = arn, .region = region, .ca_file = ca_file};
	int rc;

	if (setting(profile, "role_session_name", session, sizeof(session)))
		role.session = session;
	if (setting(profile, "external_id", external, sizeof(external)))
		role.external_id = external;
	if (setting(profile, "web_identity_token_file", path, sizeof(path))) {
		rc = bytes_read_file(path, &token);
		if (rc < 0)
			(void)error_set(err, rc, "cannot read '%s': %m", path);
		role.token = bytes_get(&token);
	} else {
		rc = role_source(profile, region, ca_file, deep, &source, err);
		if (rc == -ENOENT && !err->msg[0])
			(void)error_set(err, rc,
				"nothing has the credentials that assume its "
				"role; check source_profile");
		role.from = &source;
	}
	if (rc == 0)
		rc = fetch_role(&role, out, err);
	OPENSSL_cleanse(&source, sizeof(source));
	bytes_release(&token);
	return rc;
}

static int from_profile(const char *profile, const char *region,
	const char *ca_file, unsigned deep, struct secret *out,
	struct error *err)
{
	char text[2048];
	int rc;

	if (deep > ROLES_DEEP)
		return error_set(err, -ELOOP,
			"profile '%s' refers to itself through "
			"source_profile",
			profile);
	if (setting(profile, "role_arn", text, sizeof(text)))
		return from_role(
			profile, text, region, ca_file, deep, out, err);
	if (static_keys(profile, out))
		return 0;
	rc = from_sso(profile, ca_file, out, err);
	if (rc != -ENOENT)
		return rc;
	if (setting(profile, "credential_process", text, sizeof(text)))
		return from_process(text, out, err);
	return -ENOENT;
}

int profile_secret(const char *profile, const char *region, const char *ca_file,
	struct secret *out, struct error *err)
{
	const char *name = profile_name(profile);
	int rc = from_profile(name, region, ca_file, 0, out, err);

	if (rc < 0 && (rc != -ENOENT || err->msg[0]))
		return error_wrap(err, rc, "profile '%s'", name);
	return rc;
}

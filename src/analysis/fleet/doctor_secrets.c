/* SPDX-License-Identifier: MIT */
/*
 * Removes secrets from text, in two ways. First, known secrets are removed
 * wherever they occur. These are values from the environments of this process
 * and of the daemons, from the profile files and the files of --peer-secret
 * that they name, and from URLs in options. Then everything that has the form
 * of a secret is removed: user and query of a URL, the value after a name such
 * as "token", keys of AWS.
 */
#include "analysis/fleet/doctor_impl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/probe.h"

#define HIDDEN "[removed]"
#define FILE_MAX_BYTES ((size_t)256 << 10)
/* Maximum time for reading all files of secrets. */
#define FILES_NS NS_PER_S
/* A shorter value does not count as a secret, because it would be found
 * everywhere. */
#define SECRET_MIN 6u

static const char *const secret_words[] = {"secret", "token", "password",
	"passwd", "passphrase", "credential", "authorization", "signature",
	"access_key", "access-key", "accesskey", "api_key", "api-key", "apikey",
	"private_key", "cookie", "session_key", "x-amz-security", "key_id",
	"auth"};

#define SECRET_WORDS (sizeof(secret_words) / sizeof(*secret_words))

/* Does a name contain a word of the table? */
static bool name_is_secret(const char *name, size_t len)
{
	for (size_t i = 0; i < SECRET_WORDS; i++) {
		size_t n = strlen(secret_words[i]);

		for (size_t at = 0; at + n <= len; at++)
			if (strncasecmp(name + at, secret_words[i], n) == 0)
				return true;
	}
	return false;
}

/* Does the name say that the value is the place of a secret, such as a path? */
static bool name_is_place(const char *name, size_t len)
{
	static const char *const ends[] = {"file", "path", "dir", "sock",
		"process", "xauthority", "application_credentials"};

	while (len > 0 && isspace((unsigned char)name[len - 1]))
		len--;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t n = strlen(ends[i]);

		if (len >= n && strncasecmp(name + len - n, ends[i], n) == 0)
			return true;
	}
	return false;
}

static void secret_add(struct doctor *d, const char *value, size_t len)
{
	while (len > 0 && isspace((unsigned char)value[len - 1]))
		len--;
	while (len > 0 && isspace((unsigned char)*value)) {
		value++;
		len--;
	}
	if (len >= SECRET_MIN && !memchr(value, '\0', len))
		(void)array_text(&d->secrets, value, len);
}

static char *file_text(const char *path, size_t *len)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = fd < 0 ? NULL : malloc(FILE_MAX_BYTES + 1);
	ssize_t n = text ? read(fd, text, FILE_MAX_BYTES) : -1;

	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*len = (size_t)n;
	return text;
}

/* Collect the value of "name = value", from an environment or a profile. */
static void secret_assignment(struct doctor *d, const char *line, size_t len)
{
	const char *equal = memchr(line, '=', len);

	if (equal && name_is_secret(line, (size_t)(equal - line)) &&
		!name_is_place(line, (size_t)(equal - line)))
		secret_add(d, equal + 1, len - (size_t)(equal - line) - 1);
}

static void secrets_of_file(struct doctor *d, const char *path)
{
	size_t len;
	CLEANUP_FREE char *text = file_text(path, &len);
	char *line, *rest = text;

	while (rest && (line = strsep(&rest, "\n")))
		secret_assignment(d, line, strlen(line));
}

static void secrets_of_home(struct doctor *d, const char *home)
{
	static const char *const files[] = {"credentials", "config"};
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/.aws/%s", home,
			    files[i]) < sizeof(path))
			secrets_of_file(d, path);
}

/* Collect the user and the query of a URL. */
static void secrets_of_url(struct doctor *d, const char *url)
{
	const char *at = strstr(url, "://"), *end, *user, *query;

	if (!at)
		return;
	at += 3;
	end = at + strcspn(at, "/?# ");
	/* search the last '@', because the password may contain others */
	user = memrchr(at, '@', (size_t)(end - at));
	if (user) {
		const char *colon = memchr(at, ':', (size_t)(user - at));

		secret_add(d, colon ? colon + 1 : at,
			(size_t)(user - (colon ? colon + 1 : at)));
	}
	query = strchr(at, '?');
	while (query && *query) {
		size_t len = strcspn(query + 1, "&");
		const char *equal = memchr(query + 1, '=', len);

		/* A path in a query is not a secret unless its name says so. */
		if (equal &&
			(equal[1] != '/' ||
				name_is_secret(query + 1,
					(size_t)(equal - query - 1))))
			secret_add(d, equal + 1,
				len - (size_t)(equal - query - 1) - 1);
		query += len + 1;
	}
}

/* Collect the secrets of the files that a variable names. */
static void secrets_of_named(struct doctor *d, const char *text)
{
	if (strncmp(text, "HOME=", 5) == 0)
		secrets_of_home(d, text + 5);
	if (strncmp(text, "AWS_SHARED_CREDENTIALS_FILE=", 28) == 0)
		secrets_of_file(d, text + 28);
	if (strncmp(text, "AWS_CONFIG_FILE=", 16) == 0)
		secrets_of_file(d, text + 16);
}

/* Collect the secrets of a variable of an environment. */
static void secrets_of_variable(struct doctor *d, const char *text)
{
	secret_assignment(d, text, strlen(text));
	secrets_of_url(d, text); /* the URL of a proxy */
}

static void secrets_of_words(struct doctor *d, const struct doctor_words *w)
{
	for (size_t at = 0; at < w->bytes; at += strlen(w->words + at) + 1)
		secrets_of_url(d, w->words + at);
}

/* Call a function for each variable of this process and of the daemons. */
static void each_variable(
	struct doctor *d, void (*take)(struct doctor *d, const char *variable))
{
	extern char **environ;

	for (char **e = environ; *e; e++)
		take(d, *e);
	for (size_t i = 0; i < fleet_count(d->fleet); i++) {
		const struct doctor_words *w = &d->words[i];
		char path[64];
		size_t len = 0;

		if (!w->words)
			continue;
		(void)snprintf(
			path, sizeof(path), "/proc/%d/environ", (int)w->pid);
		CLEANUP_FREE char *text = file_text(path, &len);

		for (size_t at = 0; text && at < len;
			at += strlen(text + at) + 1)
			take(d, text + at);
	}
}

void doctor_secrets_find(struct doctor *d)
{
	each_variable(d, secrets_of_variable);
	for (size_t i = 0; i < fleet_count(d->fleet); i++)
		if (d->words[i].words)
			secrets_of_words(d, &d->words[i]);
}

/* -- Files, which may hang ------------------------------------------------- */

static void secrets_of_peers(struct doctor *d)
{
	char path[PATH_MAX];
	size_t len;

	for (size_t i = 0; i < fleet_count(d->fleet); i++) {
		const struct doctor_words *w = &d->words[i];
		const char *file =
			w->words ? doctor_option(w, "peer-secret", 0) : NULL;
		CLEANUP_FREE char *text = file && doctor_path(w, file, path)
			? file_text(path, &len)
			: NULL;

		if (text)
			secret_add(d, text, strlen(text));
	}
}

/* Write the secrets of files, and then an empty one that marks the end. Runs in
 * a child. */
static void write_secrets(void *arg, int to)
{
	struct doctor *d = arg;
	const char *bytes;
	size_t len;
	ssize_t n = 1;

	array_release(&d->secrets);
	each_variable(d, secrets_of_named);
	secrets_of_peers(d);
	(void)array_text(&d->secrets, "", 0);
	bytes = array_data(&d->secrets);
	len = array_bytes(&d->secrets);
	while (len > 0 && (n = write(to, bytes, len)) > 0) {
		bytes += n;
		len -= (size_t)n;
	}
}

/* Report that the secret of a file is not removed, because the file cannot be
 * found. */
static void warn_of_peers(struct doctor *d)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < fleet_count(d->fleet); i++) {
		const struct doctor_words *w = &d->words[i];
		const char *file =
			w->words ? doctor_option(w, "peer-secret", 0) : NULL;

		if (file && !doctor_path(w, file, path))
			doctor_find(d, DOCTOR_WARN,
				fleet_get(d->fleet, i).mountpoint,
				"look whether the archive has the secret, and "
				"mount with an absolute path",
				"--peer-secret '%s' is a relative path, and "
				"its directory is not known",
				file);
	}
}

int doctor_secrets_files(struct doctor *d, struct error *err)
{
	struct probe probe;
	struct array all = {.data = NULL};
	int rc = probe_start(&probe, write_secrets, d);
	const char *bytes;
	size_t len;

	if (rc < 0)
		return error_set(err, rc,
			"cannot start a process that reads secrets: %m; no "
			"archive is written");
	rc = doctor_take(&probe, &all, clock_now_ns() + FILES_NS);
	bytes = array_data(&all);
	len = array_bytes(&all);
	/* the last text is empty */
	if (rc == 0 &&
		(len == 0 || bytes[len - 1] || (len > 1 && bytes[len - 2])))
		rc = -EIO;
	for (size_t at = 0; rc == 0 && at + 1 < len;
		at += strlen(bytes + at) + 1)
		if (array_text(&d->secrets, bytes + at, strlen(bytes + at)) < 0)
			rc = -ENOMEM;
	array_release(&all);
	if (rc < 0)
		return error_set(err, rc,
			"no archive is written, because secrets might stay in "
			"it: cannot read ~/.aws, AWS_SHARED_CREDENTIALS_FILE, "
			"AWS_CONFIG_FILE or --peer-secret: %m; look which "
			"file system hangs");
	warn_of_peers(d);
	return 0;
}

/* -- Removing -------------------------------------------------------------- */

static void put_clean(struct array *out, const char *text, size_t len)
{
	char *at = array_grow(out, len);

	/* if memory was short, the text lacks a part, but contains no secret */
	if (at)
		memcpy(at, text, len);
}

/* Returns the length of the known secret with which the text begins, or 0. */
static size_t known_at(const struct doctor *d, const char *text)
{
	const char *s = array_data(&d->secrets);
	size_t bytes = array_bytes(&d->secrets), best = 0;

	for (size_t at = 0; at < bytes; at += strlen(s + at) + 1) {
		size_t n = strlen(s + at);

		if (n > best && strncmp(text, s + at, n) == 0)
			best = n;
	}
	return best;
}

/* Replace all known secrets. */
static char *remove_known(const struct doctor *d, const char *text)
{
	struct array out = {.data = NULL};

	while (*text) {
		size_t n = known_at(d, text);

		if (n > 0)
			put_clean(&out, HIDDEN, strlen(HIDDEN));
		else
			put_clean(&out, text, n = 1);
		text += n;
	}
	put_clean(&out, "", 1);
	return array_data(&out);
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Returns the length of the value after "name=", "name: ", "\"name\": \"" or
 * "--name ". The value of a header extends to the end of the line. */
static size_t value_length(const char *value, char mark)
{
	if (*value == '"')
		return 0;
	return mark == ':' ? strcspn(value, "\n\"")
			   : strcspn(value, " \n\"&,;");
}

/* Does the text begin with the name of a secret? Returns the length of the name
 * and the mark after it, or 0. Sets *value to the length of the value that
 * follows. */
static size_t secret_name_at(const char *text, size_t *value)
{
	size_t name = 0, mark;

	while (in_name(text[name]))
		name++;
	if (name == 0 || !name_is_secret(text, name))
		return 0;
	mark = name;
	while (text[mark] == '"' || text[mark] == ' ')
		mark++;
	if (text[mark] != '=' && text[mark] != ':')
		return 0;
	name = mark++;
	while (text[mark] == ' ' || text[mark] == '"')
		mark++;
	*value = value_length(text + mark, text[name]);
	return mark;
}

/* Returns the length of the AWS access key with which the text begins, or 0. */
static size_t aws_key_at(const char *text)
{
	size_t n = 4;

	if (strncmp(text, "AKIA", 4) != 0 && strncmp(text, "ASIA", 4) != 0)
		return 0;
	while (isupper((unsigned char)text[n]) ||
		isdigit((unsigned char)text[n]))
		n++;
	return n >= 16 ? n : 0;
}

/* Returns the length of the "://USER@" with which the text begins, or 0. */
static size_t user_at(const char *text)
{
	const char *at;

	if (strncmp(text, "://", 3) != 0)
		return 0;
	at = memrchr(text + 3, '@', strcspn(text + 3, "/?# \n\"'"));
	return at ? (size_t)(at - text) + 1 : 0;
}

static char *remove_formed(const char *text)
{
	struct array out = {.data = NULL};
	bool begins = true, url = false;

	while (*text) {
		size_t value = 0, n = 0;

		if (begins && (n = secret_name_at(text, &value)) > 0) {
			put_clean(&out, text, n);
			put_clean(&out, HIDDEN, value ? strlen(HIDDEN) : 0);
			text += n + value;
		} else if (begins && (n = aws_key_at(text)) > 0) {
			put_clean(&out, HIDDEN, strlen(HIDDEN));
			text += n;
		} else if ((n = user_at(text)) > 0) {
			put_clean(&out, "://" HIDDEN "@", strlen(HIDDEN) + 4);
			text += n;
			url = true;
		} else if (url && *text == '?') {
			put_clean(&out, "?" HIDDEN, strlen(HIDDEN) + 1);
			text += strcspn(text, " \n\"'");
		} else {
			url = url ? !strchr(" \n\"'", *text)
				  : strncmp(text, "://", 3) == 0;
			put_clean(&out, text++, 1);
		}
		begins = !in_name(text[-1]);
	}
	put_clean(&out, "", 1);
	return array_data(&out);
}

char *doctor_redact(const struct doctor *d, const char *text)
{
	CLEANUP_FREE char *known = remove_known(d, text);

	return known ? remove_formed(known) : NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * A bare reader of a store or web server: as many GETs at a time as asked for,
 * by libcurl's multi interface, into memory that is thrown away. The measure
 * of how fast a client can be.
 *
 *   far-bare URL DEPTH [CA-FILE] <names
 *
 * Prints one JSON object: files, bytes, seconds, processor seconds. One thread.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <curl/curl.h>

#define NAME_BYTES 4096
#define DEPTH_MOST 1024

static unsigned long long files, bytes, failed;
static unsigned active;
static char *url_base;
static char url[2 * NAME_BYTES];

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	bytes += size * n;
	return size * n;
}

static double clock_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* False: there are no more names. */
static bool next_name(void)
{
	char name[NAME_BYTES];

	if (!fgets(name, sizeof(name), stdin))
		return false;
	name[strcspn(name, "\n")] = '\0';
	(void)snprintf(url, sizeof(url), "%s%s", url_base, name);
	return true;
}

static bool start_next(CURLM *multi, CURL *easy)
{
	if (!next_name())
		return false;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	if (curl_multi_add_handle(multi, easy) != CURLM_OK)
		exit(1);
	active++;
	return true;
}

static CURL *new_handle(const char *ca_file)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		exit(1);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 65536L);
	curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	if (ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
	return easy;
}

static void reap(CURLM *multi)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left))) {
		CURL *easy = m->easy_handle;

		if (m->msg != CURLMSG_DONE)
			continue;
		files++;
		active--;
		failed += m->data.result != CURLE_OK;
		curl_multi_remove_handle(multi, easy);
		if (!start_next(multi, easy))
			curl_easy_cleanup(easy);
	}
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[2]) : 0, running = 1;
	double start;
	CURLM *multi;

	if (depth < 1 || depth > DEPTH_MOST) {
		fprintf(stderr, "usage: far-bare URL DEPTH [CA-FILE] <names\n");
		return 2;
	}
	url_base = argv[1];
	/* As the mount does: glibc would give memory back, and fault it in
	 * again, once a file. */
	(void)mallopt(M_MMAP_THRESHOLD, 2 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	multi = curl_multi_init();
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)depth);
	start = clock_s();
	for (int i = 0; i < depth; i++)
		if (!start_next(multi, new_handle(argc > 3 ? argv[3] : NULL)))
			break;
	while (active > 0) {
		curl_multi_perform(multi, &running);
		reap(multi);
		if (running > 0)
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
	}
	printf("{\"files\": %llu, \"bytes\": %llu, \"failed\": %llu, "
	       "\"s\": %.3f, \"cpu_s\": %.3f}\n",
		files, bytes, failed, clock_s() - start, cpu_s());
	curl_multi_cleanup(multi);
	return failed > 0;
}

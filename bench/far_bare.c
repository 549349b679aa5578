/* SPDX-License-Identifier: MIT */
/*
 * far-bare: reads from a store or a web server as fast as a client can. It
 * sends DEPTH GETs at a time by libcurl's multi interface, and drops what it
 * receives. epoll reports which transfers have bytes: curl_multi_perform()
 * would ask the kernel about every transfer in each call.
 *
 *	far-bare URL DEPTH [CA-FILE] <names
 *
 * Prints one JSON object: files, bytes, seconds, processor seconds. One thread.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include <curl/curl.h>

#define NAME_BYTES 4096
#define DEPTH_MOST 1024
#define EVENTS_MOST 64
#define IDLE_MS 1000

static unsigned long long files, bytes, failed;
static unsigned active;
static int epoll_fd;
static long due_ms = -1; /* time of the next call of libcurl; -1: none is due */
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

/* Read the next name from standard input. Returns false at its end. */
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

/* -- Waiting --------------------------------------------------------------- */

static int on_socket(
	CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct epoll_event event = {.data.fd = fd};

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;
	if (!known)
		curl_multi_assign(arg, fd, arg);
	return epoll_ctl(
		epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	(void)multi;
	(void)arg;
	due_ms = ms;
	return 0;
}

static CURLM *new_multi(long depth)
{
	CURLM *multi = curl_multi_init();

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!multi || epoll_fd < 0)
		exit(1);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, depth);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
	return multi;
}

static void work(CURLM *multi, const struct epoll_event *event)
{
	int running, mask = 0;

	if (event->events & EPOLLIN)
		mask |= CURL_CSELECT_IN;
	if (event->events & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (event->events & (EPOLLERR | EPOLLHUP))
		mask |= CURL_CSELECT_ERR | CURL_CSELECT_IN;
	curl_multi_socket_action(multi, event->data.fd, mask, &running);
}

/* Wait for events and handle them. Waits a second at most, which is enough for
 * libcurl's timers. */
static void turn(CURLM *multi)
{
	struct epoll_event event[EVENTS_MOST];
	int running, n = 0;
	long wait_ms = due_ms >= 0 && due_ms < IDLE_MS ? due_ms : IDLE_MS;

	n = epoll_wait(epoll_fd, event, EVENTS_MOST, (int)wait_ms);
	for (int i = 0; i < n; i++)
		work(multi, &event[i]);
	if (n <= 0 || due_ms == 0) {
		due_ms = -1;
		curl_multi_socket_action(
			multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	reap(multi);
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[2]) : 0;
	double start;
	CURLM *multi;

	if (depth < 1 || depth > DEPTH_MOST) {
		fprintf(stderr, "usage: far-bare URL DEPTH [CA-FILE] <names\n");
		return 2;
	}
	url_base = argv[1];
	/* Let malloc() keep the memory of a file. By default it returns the
	 * memory to the kernel after each file. The daemon makes the same
	 * setting. */
	(void)mallopt(M_MMAP_THRESHOLD, 2 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	multi = new_multi(depth);
	start = clock_s();
	for (int i = 0; i < depth; i++)
		if (!start_next(multi, new_handle(argc > 3 ? argv[3] : NULL)))
			break;
	while (active > 0)
		turn(multi);
	printf("{\"files\": %llu, \"bytes\": %llu, \"failed\": %llu, "
	       "\"s\": %.3f, \"cpu_s\": %.3f}\n",
		files, bytes, failed, clock_s() - start, cpu_s());
	curl_multi_cleanup(multi);
	return failed > 0;
}

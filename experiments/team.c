/* SPDX-License-Identifier: MIT */
/* Several threads run one loop. The mutex protects all of struct team. */
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define TEAM_MAX 64

struct team {
	pthread_mutex_t mutex;
	pthread_cond_t more, done;
	pthread_t thread[TEAM_MAX];
	unsigned threads; /* number of threads without the caller's */
	bool ending;

	/* The loop: iterations [next, n) have not begun, and `busy` are
	 * running. */
	void (*work)(void *arg, unsigned i);
	void *arg;
	unsigned next, n, busy;
};

/* Run iterations until none are left. Called with the mutex held. */
static void take_turns(struct team *t)
{
	while (t->next < t->n) {
		unsigned i = t->next++;

		t->busy++;
		pthread_mutex_unlock(&t->mutex);
		t->work(t->arg, i);
		pthread_mutex_lock(&t->mutex);
		t->busy--;
	}
	if (t->busy == 0)
		pthread_cond_signal(&t->done);
}

static void *team_thread(void *arg)
{
	struct team *t = arg;

	pthread_mutex_lock(&t->mutex);
	while (!t->ending) {
		take_turns(t);
		while (!t->ending && t->next >= t->n)
			pthread_cond_wait(&t->more, &t->mutex);
	}
	pthread_mutex_unlock(&t->mutex);
	return NULL;
}

void team_run(struct team *t, void (*work)(void *arg, unsigned i), void *arg,
	unsigned n)
{
	pthread_mutex_lock(&t->mutex);
	t->work = work;
	t->arg = arg;
	t->next = 0;
	t->n = n;
	pthread_cond_broadcast(&t->more);
	take_turns(t);
	while (t->busy > 0)
		pthread_cond_wait(&t->done, &t->mutex);
	pthread_mutex_unlock(&t->mutex);
}

int team_new(struct team **out, unsigned threads)
{
	struct team *t = calloc(1, sizeof(*t));
	int rc = 0;

	*out = NULL;
	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->more, NULL);
	pthread_cond_init(&t->done, NULL);
	if (threads > TEAM_MAX)
		threads = TEAM_MAX;
	while (t->threads + 1 < threads && rc == 0) {
		rc = -pthread_create(
			&t->thread[t->threads], NULL, team_thread, t);
		if (rc == 0)
			t->threads++;
	}
	if (rc < 0) {
		team_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void team_free(struct team *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->mutex);
	t->ending = true;
	pthread_cond_broadcast(&t->more);
	pthread_mutex_unlock(&t->mutex);
	for (unsigned i = 0; i < t->threads; i++)
		pthread_join(t->thread[i], NULL);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->more);
	pthread_mutex_destroy(&t->mutex);
	free(t);
}

/* SPDX-License-Identifier: MIT */
/*
 * Searches for a learning rate with one train-cnn for each rate, all at the
 *same time. In a first round each job reads and decodes by itself, in a second
 *one all jobs share their batches (--share). Prints a table of both. A rate
 *gets the same batches in both rounds, and so the same accuracy. Train again
 *with the best rate and another --seed.
 *
 *	search-cnn ./train-cnn 0.01,0.1,0.5 [OPTION OF TRAIN-CNN ...] DATASET
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64
#define ARGS_MAX 64

struct job {
	char *rate;
	pid_t pid;
	FILE *out;	    /* its standard output, a temporary file */
	double accuracy[2]; /* after its last epoch: apart, and shared */
	double seconds[2];
};

struct search {
	struct job job[JOBS_MAX];
	unsigned jobs;
	char *arg[ARGS_MAX]; /* the command; [2] is the rate */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double children_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "search-cnn: %s: %s\n", what, why);
	return 1;
}

static int start(struct search *s, struct job *j)
{
	j->out = tmpfile();
	if (!j->out)
		return fail("temporary file", strerror(errno));
	j->pid = fork();
	if (j->pid < 0)
		return fail("fork", strerror(errno));
	if (j->pid > 0)
		return 0;
	s->arg[2] = j->rate;
	dup2(fileno(j->out), STDOUT_FILENO);
	execv(s->arg[0], s->arg);
	_exit(fail(s->arg[0], strerror(errno)));
}

/* The accuracy in the last line that the job wrote. */
static bool read_accuracy(struct job *j, int way)
{
	char line[256];
	bool found = false;

	rewind(j->out);
	while (fgets(line, sizeof(line), j->out)) {
		const char *at = strstr(line, "accuracy ");

		if (at)
			found = sscanf(at, "accuracy %lf", &j->accuracy[way]) ==
				1;
	}
	fclose(j->out);
	return found;
}

/* Wait until one of the jobs has ended. */
static int reap(struct search *s, int way, double begun)
{
	int status;
	pid_t pid = wait(&status);

	for (unsigned i = 0; i < s->jobs; i++) {
		struct job *j = &s->job[i];

		if (j->pid != pid)
			continue;
		j->seconds[way] = now_s() - begun;
		if (!read_accuracy(j, way) || status != 0)
			return fail(j->rate, "the job failed");
		return 0;
	}
	return fail("wait", strerror(errno));
}

static int run_all(struct search *s, int way, double *wall_s, double *cpu_s)
{
	double begun = now_s(), before = children_s();
	unsigned started = 0;
	int rc = 0;

	for (; rc == 0 && started < s->jobs; started++)
		rc = start(s, &s->job[started]);
	for (unsigned i = 0; i < started; i++)
		rc |= reap(s, way, begun);
	*wall_s = now_s() - begun;
	*cpu_s = children_s() - before;
	return rc;
}

static bool take_rates(struct search *s, char *rates)
{
	for (char *at; (at = strsep(&rates, ",")) != NULL; s->jobs++) {
		if (s->jobs == JOBS_MAX || !*at)
			return false;
		s->job[s->jobs].rate = at;
	}
	return true;
}

static void tell(
	const struct search *s, const double *wall_s, const double *cpu_s)
{
	printf("%-12s %10s %10s %10s\n", "rate", "accuracy", "apart, s",
		"shared, s");
	for (unsigned i = 0; i < s->jobs; i++)
		printf("%-12s %10.4f %10.1f %10.1f\n", s->job[i].rate,
			s->job[i].accuracy[1], s->job[i].seconds[0],
			s->job[i].seconds[1]);
	printf("%-12s %10s %10.1f %10.1f\n", "all", "", wall_s[0], wall_s[1]);
	printf("%-12s %10s %10.1f %10.1f\n", "processors", "", cpu_s[0],
		cpu_s[1]);
}

int main(int argc, char **argv)
{
	static struct search s;
	static char lr[] = "--lr", share[] = "--share",
		    share_jobs[] = "--share-jobs";
	char name[32], jobs[16];
	double wall_s[2], cpu_s[2];

	if (argc < 4 || argc > ARGS_MAX - 6 || !take_rates(&s, argv[2])) {
		fputs("Usage: search-cnn TRAIN-CNN RATE,RATE,... "
		      "[OPTION ...] DATASET\n",
			stderr);
		return 2;
	}
	snprintf(name, sizeof(name), "search-%ld", (long)getpid());
	snprintf(jobs, sizeof(jobs), "%u", s.jobs);
	s.arg[0] = argv[1];
	s.arg[1] = lr;
	memcpy(&s.arg[3], &argv[3], (size_t)(argc - 3) * sizeof(*argv));
	if (run_all(&s, 0, &wall_s[0], &cpu_s[0]))
		return 1;
	s.arg[3] = share;
	s.arg[4] = name;
	s.arg[5] = share_jobs;
	s.arg[6] = jobs;
	memcpy(&s.arg[7], &argv[3], (size_t)(argc - 3) * sizeof(*argv));
	if (run_all(&s, 1, &wall_s[1], &cpu_s[1]))
		return 1;
	tell(&s, wall_s, cpu_s);
	for (unsigned i = 0; i < s.jobs; i++)
		if (s.job[i].accuracy[0] != s.job[i].accuracy[1])
			return fail(s.job[i].rate,
				"accuracy differs between the two rounds");
	return 0;
}

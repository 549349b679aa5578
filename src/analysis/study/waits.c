/* SPDX-License-Identifier: MIT */
/* Computes how readers spend their time; see waits_impl.h. */
#include "analysis/study/waits_impl.h"

/* If there are fewer intervals than this, there is no result. */
#define INTERVALS_LEAST 32

/* The shortest quarter of the intervals are the short ones. An interval that is
 * longer than the longest of these by more than WAIT_FACTOR is a wait. The
 * factor is so large because the times to decode photographs of one dataset
 * differ that much. */
#define SHORT 0.25
#define WAIT_FACTOR 5

void waits_read(struct waits *w, const json_t *reply)
{
	const json_t *row;
	size_t i;

	*w = (struct waits){
		.ran_s = json_number_value(json_object_get(reply, "ran_us")) /
			1e6};
	json_array_foreach(json_object_get(reply, "intervals"), i, row)
	{
		json_int_t at = json_integer_value(json_array_get(row, 0));

		if (at < 0 || at >= WAITS_LENGTHS)
			continue;
		w->count[at] = json_number_value(json_array_get(row, 1));
		w->length_s[at] =
			json_number_value(json_array_get(row, 2)) / 1e6;
	}
}

void waits_add(
	struct waits *sum, const struct waits *from, const struct waits *to)
{
	for (unsigned i = 0; i < WAITS_LENGTHS; i++) {
		sum->count[i] += to->count[i] - from->count[i];
		sum->length_s[i] += to->length_s[i] - from->length_s[i];
	}
	sum->ran_s += to->ran_s - from->ran_s;
}

static double sum_lengths(const double *of)
{
	double sum = 0;

	for (unsigned i = 0; i < WAITS_LENGTHS; i++)
		sum += of[i];
	return sum;
}

/* Returns the length that a quarter of the intervals do not exceed. */
static double short_s(const struct waits *w, double all)
{
	double seen = 0;

	for (unsigned i = 0; i < WAITS_LENGTHS; i++) {
		seen += w->count[i];
		if (w->count[i] > 0 && seen >= SHORT * all)
			return w->length_s[i] / w->count[i];
	}
	return 0;
}

struct profile_waits waits_of(const struct waits *w)
{
	double n = sum_lengths(w->count), length_s = sum_lengths(w->length_s);
	double most_s = WAIT_FACTOR * short_s(w, n), busy_n = 0, busy_s = 0;

	if (n < INTERVALS_LEAST || length_s <= 0)
		return (struct profile_waits){.n = 0};
	for (unsigned i = 0; i < WAITS_LENGTHS; i++)
		if (w->length_s[i] <= most_s * w->count[i]) {
			busy_n += w->count[i];
			busy_s += w->length_s[i];
		}
	return (struct profile_waits){.n = n,
		.each_s = length_s / n,
		.busy_s = busy_s / busy_n,
		.ran = w->ran_s / length_s};
}

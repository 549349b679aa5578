/* SPDX-License-Identifier: MIT */
/*
 * The shortest complete program: one epoch of batches, with each example served
 * twice, each time with a new crop. Build it against the installed library:
 *
 *	cc minimal.c -o minimal $(pkg-config --cflags --libs refrain)
 *	./minimal /mnt/imagenet/train
 *
 * or with the static library, to run it where the library is not installed:
 *
 *	cc minimal.c -o minimal -pthread -l:librefrain.a \
 *		$(pkg-config --static --libs refrain | sed s/-lrefrain//)
 */
#include <stdio.h>

#include <refrain/loader.h>

/* Takes the place of a training step: adds up the pixels. */
static unsigned long train(
	const unsigned char *pixels, const int64_t *labels, size_t bytes)
{
	unsigned long sum = (unsigned long)labels[0];

	for (size_t i = 0; i < bytes; i++)
		sum += pixels[i];
	return sum;
}

int main(int argc, char **argv)
{
	struct refrain_config c;
	struct refrain_loader *l;
	const struct refrain_batch *b;
	unsigned long steps = 0, sum = 0;
	int rc;

	if (argc != 2)
		return fprintf(stderr, "usage: minimal DATASET\n"), 2;
	refrain_config_init(&c);
	c.dataset = argv[1];
	c.batch = 64;
	c.echo = 2;
	rc = refrain_open(&l, &c);
	if (rc < 0)
		return fprintf(stderr, "minimal: %s\n", refrain_message(NULL)),
		       1;
	while ((rc = refrain_next(l, &b, 60000)) > 0) {
		sum += train(b->data, b->labels, b->data_bytes);
		steps++;
		refrain_release(b);
	}
	if (rc < 0)
		fprintf(stderr, "minimal: %s\n", refrain_message(l));
	refrain_close(l);
	printf("%lu steps, sum of all pixels %lu\n", steps, sum);
	return rc < 0;
}

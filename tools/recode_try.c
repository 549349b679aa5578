/* SPDX-License-Identifier: MIT */
/* Prints the trials of `refrain recode --try`, as a table and as a page. The
 * page needs no other file: its pictures are the files themselves. */
#include "recode_try.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/size.h"
#include "command.h"
#include "loader/recode/recode.h"
#include "progress.h"

#define IMAGES_DEFAULT 200u
#define CACHE_DEFAULT "35%"

struct trial_page {
	struct recode_trials trials;
	uint64_t cache_bytes;
};

/* The share of the dataset that is cached when all bytes are f of the
 * originals', and the bytes that an epoch then reads from the origin, as a
 * share of the originals': an entry is never evicted, so what is cached is read
 * from the origin no more. */
static double cached_share(const struct trial_page *p, double f)
{
	double c = (double)p->cache_bytes / (double)p->trials.source_bytes;

	return c >= f ? 1 : c / f;
}

static double origin_share(const struct trial_page *p, double f)
{
	return f * (1 - cached_share(p, f));
}

/* -- The table ------------------------------------------------------------- */

static void print_trial(const struct trial_page *p,
	const struct recode_trial *r, const struct recode_trial *original)
{
	double origin = origin_share(p, r->bytes);
	char bytes[SIZE_TEXT_MAX];

	(void)printf("%-25s%6.3f%8.0f%6.2f%7.1f%7.1f%7.3f%6.0f %%%11s\n",
		r->name, r->bytes, r->decode_us,
		r->decode_us / original->decode_us, r->psnr, r->psnr_worst,
		r->ssim, 100 * cached_share(p, r->bytes),
		size_format((uint64_t)(origin * (double)p->trials.source_bytes),
			bytes));
}

static void print_trials(const struct trial_page *p)
{
	const struct recode_trials *t = &p->trials;
	char all[SIZE_TEXT_MAX], cache[SIZE_TEXT_MAX];

	(void)printf("%u images of %llu files (%s), %u of them progressive; a "
		     "cache of %s\n\n",
		t->images, (unsigned long long)t->files,
		size_format(t->source_bytes, all), t->progressive,
		size_format(p->cache_bytes, cache));
	(void)puts(
		"form                      bytes  decode a crop   PSNR  worst"
		"   SSIM  cached   read an\n"
		"                                   us  ratio     dB  tenth"
		"                     epoch");
	for (unsigned i = 0; i < TRIAL_ROWS; i++)
		print_trial(p, &t->row[i], &t->row[0]);
	(void)puts("\nPSNR and SSIM rank the forms, but do not tell the "
		   "accuracy of a training: train an epoch on each of two. 60 "
		   "dB: equal pixels.");
}

/* -- The page -------------------------------------------------------------- */

static void put_base64(FILE *to, const uint8_t *data, size_t bytes)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
				    "pqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes; i += 3) {
		size_t n = bytes - i < 3 ? bytes - i : 3;
		unsigned v = (unsigned)data[i] << 16;

		v |= n > 1 ? (unsigned)data[i + 1] << 8 : 0;
		v |= n > 2 ? data[i + 2] : 0;
		(void)fputc(digit[v >> 18], to);
		(void)fputc(digit[v >> 12 & 63], to);
		(void)fputc(n > 1 ? digit[v >> 6 & 63] : '=', to);
		(void)fputc(n > 2 ? digit[v & 63] : '=', to);
	}
}

static void page_put_row(FILE *to, const struct trial_page *p, unsigned i)
{
	const struct recode_trial *r = &p->trials.row[i];
	double origin = origin_share(p, r->bytes);
	char bytes[SIZE_TEXT_MAX];

	(void)fprintf(to,
		"<tr><th>%s<br><small>%s</small><td>%.3f<td>%.0f<td>%.1f"
		"<td>%.1f<td>%.3f<td>%.0f %%<td>%s\n",
		r->name, r->options, r->bytes, r->decode_us, r->psnr,
		r->psnr_worst, r->ssim, 100 * cached_share(p, r->bytes),
		size_format((uint64_t)(origin * (double)p->trials.source_bytes),
			bytes));
}

static void put_pictures(FILE *to, const struct trial_page *p, unsigned k)
{
	(void)fputs("<div>\n", to);
	for (unsigned i = 0; i < TRIAL_ROWS; i++) {
		const struct recode_trial *r = &p->trials.row[i];

		if (!r->picture[k].data)
			continue;
		(void)fprintf(to,
			"<figure><img alt=\"\" "
			"src=\"data:image/jpeg;base64,");
		put_base64(to, r->picture[k].data, r->picture[k].bytes);
		(void)fprintf(to,
			"\"><figcaption>%s, %zu bytes</figcaption>"
			"</figure>\n",
			r->name, r->picture[k].bytes);
	}
	(void)fputs("</div>\n", to);
}

static void put_page(FILE *to, const struct trial_page *p)
{
	char all[SIZE_TEXT_MAX], cache[SIZE_TEXT_MAX];

	(void)fprintf(to,
		"<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
		"<title>refrain recode --try</title><style>\n"
		"body{font:15px/1.4 sans-serif;margin:2em}"
		"td{text-align:right;padding:2px 12px}th{text-align:left}"
		"div{display:flex;overflow-x:auto;margin:1em 0}"
		"figure{margin:0 8px 0 0}figcaption{font-size:12px}"
		"img{width:320px;height:320px;object-fit:cover}</style>\n"
		"<h1>Fewer bytes</h1><p>%u images of %llu files (%s), %u of "
		"them progressive; a cache of %s.</p>\n"
		"<table><tr><th>form<th>bytes<th>decode a crop, us<th>PSNR, dB"
		"<th>worst tenth<th>SSIM<th>cached<th>read an epoch\n",
		p->trials.images, (unsigned long long)p->trials.files,
		size_format(p->trials.source_bytes, all), p->trials.progressive,
		size_format(p->cache_bytes, cache));
	for (unsigned i = 0; i < TRIAL_ROWS; i++)
		page_put_row(to, p, i);
	(void)fputs("</table><p>PSNR and SSIM rank the forms, but do not tell "
		    "the accuracy of a training. The pictures are the files "
		    "themselves.</p>\n",
		to);
	for (unsigned k = 0; k < TRIAL_PICTURES; k++)
		put_pictures(to, p, k);
}

static int write_page(
	const struct trial_page *p, const char *path, struct error *err)
{
	FILE *to = fopen(path, "we");
	int rc = 0;

	if (!to)
		return error_set(err, -errno, "cannot write '%s': %m", path);
	put_page(to, p);
	if (ferror(to))
		rc = -EIO;
	if (fclose(to) != 0 && rc == 0)
		rc = -errno;
	return rc < 0 ? error_set(err, rc, "cannot write '%s': %m", path) : 0;
}

/* -- The command ----------------------------------------------------------- */

int recode_try_run(const char *source, unsigned images, const char *cache,
	const char *html)
{
	struct trial_page page;
	struct progress progress;
	struct error err = {""};
	int rc;

	progress_begin(&progress);
	rc = recode_try(&page.trials, source, images ? images : IMAGES_DEFAULT,
		recode_show, &progress, &err);
	progress_end(&progress);
	if (rc < 0)
		return command_fail("recode", &err);
	rc = size_parse(cache ? cache : CACHE_DEFAULT, page.trials.source_bytes,
		&page.cache_bytes, &err);
	if (rc == 0) {
		print_trials(&page);
		if (html)
			rc = write_page(&page, html, &err);
	}
	recode_trials_release(&page.trials);
	return rc < 0 ? command_fail("recode", &err) : EXIT_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * The list of the parts of an engine. Each part has a pointer to this list. The
 * list is filled in once, in the order of its members, before threads are
 * started. A part calls only parts that are below it in the drawing in
 * engine_impl.h.
 */
#ifndef ENGINE_ENGINE_PARTS_IMPL_H
#define ENGINE_ENGINE_PARTS_IMPL_H

#include <refrain/loader.h>

struct budget;
struct dataset;
struct echoes;
struct lender;
struct memory;
struct meter;
struct mount_help;
struct originals;
struct outcome;
struct planner;
struct puller;
struct reader;
struct schedule;
struct settings;
struct steps;
struct turn;
struct workers;

struct engine_parts {
	const struct settings *s;
	const struct refrain_config *c; /* configuration in the settings */
	struct turn *turn;		/* the lock of all parts */
	struct memory *memory;		/* all memory is charged to it */
	struct schedule *schedule;	/* see struct planner in planner.c */
	struct dataset *dataset;
	struct mixture *mixture; /* NULL: there are no mix and no buckets */
	struct outcome *outcome;
	struct meter *meter;
	struct lender *lender;
	struct steps *steps;
	struct originals *pool;
	struct budget *budget;
	struct workers *workers;
	struct mount_help *help; /* help of the dataset's mount, or NULL */
	struct puller *puller;   /* NULL: there is no service */
	struct planner *planner;
	struct echoes *echoes;
	struct reader *reader;
};

#endif

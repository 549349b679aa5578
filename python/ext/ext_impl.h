/* SPDX-License-Identifier: MIT */
/*
 * The extension module refrain._refrain: the loader of refrain/loader.h and the
 * echo stage of refrain/echo.h for CPython, on these headers alone. What is
 * convenient is written in Python around it; here is what must be fast, release
 * the GIL, or keep memory alive.
 *
 * All structs belong to the GIL, but where a comment says otherwise.
 */
#ifndef EXT_IMPL_H
#define EXT_IMPL_H

/* The buffer protocol is in the stable ABI from 3.11 on. */
#if defined(REFRAIN_LIMITED_API) && !defined(Py_LIMITED_API)
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pythread.h>
#include <refrain/loader.h>
#include <stdbool.h>
#include <sys/types.h>

/* How long a thread waits before it looks for signals. */
#define LOOK_MS 50

/*
 * A loader as the library has it. It outlives its Loader object while batches
 * refer to it, and for ever if callbacks were left behind.
 */
struct core {
	unsigned refs;		  /* the Loader, and its batches */
	struct refrain_loader *l; /* NULL: closed */
	bool shares;		  /* set once: batches are read-only */
	bool closing;
	unsigned inside; /* calls that are in the library without the GIL */
	PyThread_type_lock turn;	     /* of those who wait for a batch */
	const struct refrain_batch *pending; /* came as a signal did */
	pid_t pid;
	PyObject *decode, *augment; /* callbacks, or NULL */
	size_t decoded_max_bytes;   /* of what decode returns */
	PyObject *cause;	    /* the first exception of a callback */
};

/* -- module.c -- */

extern PyObject *batch_type, *view_type, *column_type, *loader_type, *echo_type;

/*
 * Raise what refrain._errors makes of an errno and a message; NULL, always.
 * `core` may be NULL; with it the path and the stage of the failure are looked
 * up, and a callback's exception is the cause.
 */
PyObject *raise_error(struct core *core, int rc, const char *message);
PyObject *raise_open(int rc, const char *message, PyObject *path);

/* numpy.asarray(object); steals the reference. */
PyObject *as_array(PyObject *object);

/* -- open.c -- */

/*
 * refrain_open() on a thread of its own, so that a signal ends the waiting. 0,
 * or -1 with an exception; what hangs is left behind then, with `hold`, which
 * keeps alive what the configuration points to.
 */
int core_open(struct core *core, const struct refrain_config *config,
	PyObject *hold, PyObject *path);

/* -- core.c -- */

struct core *core_new(void);
struct core *core_ref(struct core *core);
void core_unref(struct core *core);
/* The handle, or NULL with an exception: closed, or opened before fork(). */
struct refrain_loader *core_handle(struct core *core);
/* Wait for the next batch: 1, 0 at the end, -1 with an exception. */
int core_next(
	struct core *core, const struct refrain_batch **out, double timeout_s);
/* Safe while other threads wait; the number of reads left behind. */
int core_close(struct core *core);
/* {'refrain': 1, 'state': bytes, 'step': int} before the batch of a step. */
PyObject *core_state(struct core *core, uint64_t step);

/* -- callback.c -- */

/* Let the library call the core's Python functions. */
void callbacks_set(struct core *core, struct refrain_config *config);

/* -- batch.c -- */

struct batch {
	PyObject ob_base;
	struct core *core;
	const struct refrain_batch *b; /* NULL: released */
	PyObject *targets;	       /* or NULL */
	Py_ssize_t exports;
};

PyObject *batch_new(
	struct core *core, const struct refrain_batch *b, PyObject *targets);
extern PyType_Spec batch_spec;
/* tp_new of types whose objects only a Loader makes. */
PyObject *cannot_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* -- view.c -- */

struct array;

/*
 * An array in the memory of a batch. Without a column it is one of the batch's
 * own. With a column it is one of the column's, or its values if `array` is
 * NULL. The column belongs to the batch, too.
 */
struct place {
	const struct array *array;
	const struct refrain_column *column;
};

struct view {
	PyObject ob_base;
	struct batch *batch;
	struct place place;
};

/* The array of the batch of this name; `array` is NULL if there is none. */
struct place place_find(const char *name);
struct place place_data(void);
struct place place_values(const struct refrain_column *column);
/* The offsets or the lengths of a column. */
struct place place_offsets(const struct refrain_column *column);
struct place place_lengths(const struct refrain_column *column);

/* A memory that lives as long as the batch: the buffer protocol and DLPack. */
PyObject *view_new(struct batch *batch, struct place place);
extern PyType_Spec view_spec;
int batch_buffer(PyObject *batch, Py_buffer *out, int flags);
void batch_buffer_done(PyObject *batch, Py_buffer *buffer);

/* Of all objects that are a struct view. */
PyObject *view_of_type(PyObject *type, struct batch *batch, struct place place);
void view_dealloc(PyObject *self);
int view_buffer(PyObject *self, Py_buffer *out, int flags);
void view_buffer_done(PyObject *self, Py_buffer *buffer);
PyObject *view_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *view_lent(PyObject *self, PyObject *unused);

/* The description of an array for the buffer protocol and DLPack. */
struct layout {
	void *data;
	Py_ssize_t bytes, item;
	const char *format; /* of module struct */
	int code; /* of DLPack: 0 signed, 1 unsigned, 2 float, -1: none */
	int ndim;
	Py_ssize_t shape[6], strides[6];
	bool readonly;
};

/* -1 with an exception: it was released. */
int place_layout(struct batch *batch, struct place place, struct layout *out);

/* -- column.c -- */

/* A Column, or NULL with an exception. */
PyObject *column_new(struct batch *batch, const struct refrain_column *column);
extern PyType_Spec column_spec;

/* -- dlpack.c -- */

/* A capsule; keywords as in the array API standard. */
PyObject *dlpack_export(struct batch *batch, struct place place, PyObject *args,
	PyObject *kwargs);
/* A capsule of version 0 of the memory itself, even if that is read-only. */
PyObject *dlpack_lent(struct batch *batch, struct place place);
PyObject *dlpack_device(PyObject *self, PyObject *unused);

/* -- loader.c -- */

extern PyType_Spec loader_spec;

/* Set members from a dict of texts, which must live as long as the
 * configuration, and a state that is bytes or None. -1 with an exception. */
int config_set_members(struct refrain_config *config, PyObject *members);
int config_set_state(struct refrain_config *config, PyObject *state);

/* -- echo.c -- */

extern PyType_Spec echo_spec;

#endif

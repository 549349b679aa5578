/* SPDX-License-Identifier: MIT */
/*
 * |The extension module refrain._refrain: gives CPython the loader of
 * |refrain/loader.h and the echo stage of refrain/echo.h. It uses nothing of
 * the |library but these headers. The module has the code that must be fast,
 * must |release the GIL or must keep memory allocated; the other code is in
 * Python. | |The GIL guards all structs, unless a comment says otherwise.
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

/* The interval at which a waiting thread looks for signals. */
#define LOOK_MS 50

/* The library's handle of a loader. It is freed after the Loader object and all
 * batches of it; never if a thread with callbacks was left behind. */
struct core {
	unsigned refs; /* number of references: the Loader and its batches */
	struct refrain_loader *l; /* NULL: the loader is closed */
	/* batches are read-only, because a share has them; set once */
	bool shares;
	bool closing;
	/* number of calls that are inside the library without the GIL */
	unsigned inside;
	/* the thread that waits for a batch has this lock */
	PyThread_type_lock turn;
	/* batch that arrived together with a signal, or NULL */
	const struct refrain_batch *pending;
	pid_t pid;
	PyObject *decode, *augment; /* callbacks in Python, or NULL */
	size_t decoded_max_bytes;   /* maximum size of the result of `decode` */
	/* first exception that a callback has raised, or NULL */
	PyObject *cause;
};

/* -- module.c -- */

extern PyObject *batch_type, *view_type, *column_type, *loader_type, *echo_type;

/* Raise the exception that refrain._errors makes for an errno and a message.
 * Always returns NULL. If `core` is not NULL, the exception has the path and
 * the stage of the failure, and its cause is the exception of a callback. */
PyObject *raise_error(struct core *core, int rc, const char *message);
PyObject *raise_open(int rc, const char *message, PyObject *path);

/* Returns numpy.asarray(object). Steals the reference to the object. */
PyObject *as_array(PyObject *object);

/* -- open.c -- */

/* Call refrain_open() in a thread of its own, so that a signal can end the
 * wait. Returns 0, or -1 with an exception. If the wait was ended, the thread
 * is left behind: it has a reference to `hold`, the object that the
 * configuration points into. */
int core_open(struct core *core, const struct refrain_config *config,
	PyObject *hold, PyObject *path);

/* -- core.c -- */

struct core *core_new(void);
struct core *core_ref(struct core *core);
void core_unref(struct core *core);
/* Returns the handle; or NULL with an exception if the loader is closed, or was
 * opened before a fork(). */
struct refrain_loader *core_handle(struct core *core);
/* Wait for the next batch. Returns 1, 0 at the end of the run, or -1 with an
 * exception. */
int core_next(
	struct core *core, const struct refrain_batch **out, double timeout_s);
/* Close the loader, even while other threads wait for batches. Returns the
 * number of reads that were left behind. */
int core_close(struct core *core);
/* Returns {'refrain': 1, 'state': bytes, 'step': int}, the state before the
 * batch of a step. */
PyObject *core_state(struct core *core, uint64_t step);

/* -- callback.c -- */

/* Make the library call the Python functions of `core`. */
void callbacks_set(struct core *core, struct refrain_config *config);

/* -- batch.c -- */

struct batch {
	PyObject ob_base;
	struct core *core;
	/* the library's batch; NULL: it was released */
	const struct refrain_batch *b;
	PyObject *targets; /* the targets, once they were made, or NULL */
	Py_ssize_t exports;
};

PyObject *batch_new(
	struct core *core, const struct refrain_batch *b, PyObject *targets);
extern PyType_Spec batch_spec;
/* tp_new of types whose objects only a Loader makes; it raises an exception. */
PyObject *cannot_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* -- view.c -- */

struct array;

/* Names an array in the memory of a batch. Without a column, `array` is an
 * array of the batch. With a column, `array` is an array of that column; if it
 * is NULL, the column's values are meant. The column belongs to the batch, too.
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

/* Find the array of the batch with this name. The result's `array` is NULL if
 * there is none. */
struct place place_find(const char *name);
struct place place_data(void);
struct place place_values(const struct refrain_column *column);
/* Find the array of a column's offsets, or of its lengths. */
struct place place_offsets(const struct refrain_column *column);
struct place place_lengths(const struct refrain_column *column);

/* Returns an object that shows an array by the buffer protocol and by DLPack.
 * It has a reference to the batch. */
PyObject *view_new(struct batch *batch, struct place place);
extern PyType_Spec view_spec;
int batch_buffer(PyObject *batch, Py_buffer *out, int flags);
void batch_buffer_done(PyObject *batch, Py_buffer *buffer);

/* Like view_new(), for any type whose objects begin with a struct view. */
PyObject *view_of_type(PyObject *type, struct batch *batch, struct place place);
void view_dealloc(PyObject *self);
int view_buffer(PyObject *self, Py_buffer *out, int flags);
void view_buffer_done(PyObject *self, Py_buffer *buffer);
PyObject *view_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *view_lent(PyObject *self, PyObject *unused);

/* Describes an array for the buffer protocol and for DLPack. */
struct layout {
	void *data;
	Py_ssize_t bytes, item;
	/* format of the items, as in Python's module struct */
	const char *format;
	/* type code of DLPack: 0 signed, 1 unsigned, 2 float; -1: none */
	int code;
	int ndim;
	Py_ssize_t shape[6], strides[6];
	bool readonly;
};

/* Fill in the layout of an array. Returns -1 with an exception if the batch was
 * released. */
int place_layout(struct batch *batch, struct place place, struct layout *out);

/* -- column.c -- */

/* Returns a Column, or NULL with an exception. */
PyObject *column_new(struct batch *batch, const struct refrain_column *column);
extern PyType_Spec column_spec;

/* -- dlpack.c -- */

/* Returns a capsule with the array. The keywords are those of __dlpack__() in
 * the array API standard. */
PyObject *dlpack_export(struct batch *batch, struct place place, PyObject *args,
	PyObject *kwargs);
/* Returns a capsule of version 0 with the memory itself, even if the memory is
 * read-only. */
PyObject *dlpack_lent(struct batch *batch, struct place place);
PyObject *dlpack_device(PyObject *self, PyObject *unused);

/* -- loader.c -- */

extern PyType_Spec loader_spec;

/* Set members from a dict of texts, and the state, which is bytes or None.
 * These objects must live as long as the configuration. Returns -1 with an
 * exception. */
int config_set_members(struct refrain_config *config, PyObject *members);
int config_set_state(struct refrain_config *config, PyObject *state);

/* -- echo.c -- */

extern PyType_Spec echo_spec;

#endif

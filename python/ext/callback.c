/* SPDX-License-Identifier: MIT */
/* Calls Python functions from the loader's threads. Each call takes the GIL, so
 * the functions run one at a time. If a function raises an exception, the
 * example counts as damaged. The first exception is printed, and stored as the
 * cause of later errors. */
#include "ext_impl.h"

#include <errno.h>
#include <string.h>

/* Returns the errno of an OSError as -errno; -EBADMSG for other exceptions. */
static int errno_of(PyObject *exception)
{
	PyObject *number = PyObject_GetAttrString(exception, "errno");
	long value = number && PyLong_Check(number) ? PyLong_AsLong(number) : 0;

	Py_XDECREF(number);
	PyErr_Clear();
	return value > 0 && value < 4096 ? -(int)value : -EBADMSG;
}

/* Turn the exception that is set into -errno, and clear it. */
static int note_exception(struct core *core, PyObject *function)
{
	PyObject *type, *value, *trace;
	int rc;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	if (trace)
		(void)PyException_SetTraceback(value, trace);
	rc = errno_of(value);
	if (core->cause) {
		Py_XDECREF(type);
		Py_XDECREF(value);
		Py_XDECREF(trace);
		return rc;
	}
	core->cause = value;
	Py_INCREF(value);
	PyErr_Restore(type, value, trace);
	PyErr_WriteUnraisable(function);
	return rc;
}

static int no_room(Py_ssize_t bytes, size_t room)
{
	(void)PyErr_Format(PyExc_ValueError,
		"the callback returned %zd bytes, but there is room for %zu",
		bytes, room);
	return -1;
}

/* -- decode(data, path, index) --------------------------------------------- */

/* The result is an array of bytes with three dimensions, which are the shape of
 * the image. */
static int take_decoded(
	struct core *core, PyObject *result, struct refrain_decoded *out)
{
	Py_buffer view;
	int rc = 0;

	if (PyObject_GetBuffer(result, &view, PyBUF_ND | PyBUF_C_CONTIGUOUS) <
		0)
		return -1;
	if ((size_t)view.len > core->decoded_max_bytes) {
		rc = no_room(view.len, core->decoded_max_bytes);
	} else {
		memcpy(out->data, view.buf, (size_t)view.len);
		out->bytes = (size_t)view.len;
	}
	if (rc == 0 && view.ndim == 3 && view.itemsize == 1) {
		out->height = (uint32_t)view.shape[0];
		out->width = (uint32_t)view.shape[1];
		out->channels = (uint32_t)view.shape[2];
	}
	PyBuffer_Release(&view);
	return rc;
}

static int call_decode(struct core *core, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	PyObject *result, *path = PyUnicode_DecodeFSDefault(in->path);
	int rc = -1;

	if (!path)
		return -1;
	result = PyObject_CallFunction(core->decode, "y#NK",
		(const char *)in->data, (Py_ssize_t)in->bytes, path,
		(unsigned long long)in->index);
	if (result)
		rc = take_decoded(core, result, out);
	Py_XDECREF(result);
	return rc;
}

static int on_decode(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	PyGILState_STATE state = PyGILState_Ensure();
	struct core *core = ctx;
	int rc = 0;

	if (core->closing || !core->decode)
		rc = -ECANCELED;
	else if (call_decode(core, in, out) < 0)
		rc = note_exception(core, core->decode);
	PyGILState_Release(state);
	return rc;
}

/* -- augment_fn(data, shape, seed) ----------------------------------------- */

static int take_sample(PyObject *result, void *out, size_t room)
{
	Py_buffer view;
	int rc = 0;

	if (PyObject_GetBuffer(result, &view, PyBUF_ND | PyBUF_C_CONTIGUOUS) <
		0)
		return -1;
	if ((size_t)view.len != room)
		rc = no_room(view.len, room);
	else
		memcpy(out, view.buf, room);
	PyBuffer_Release(&view);
	return rc;
}

static int call_augment(struct core *core, const struct refrain_decoded *in,
	uint64_t seed, void *out, size_t sample_bytes)
{
	PyObject *result;
	int rc = -1;

	result = PyObject_CallFunction(core->augment, "y#(III)K",
		(const char *)in->data, (Py_ssize_t)in->bytes, in->height,
		in->width, in->channels, (unsigned long long)seed);
	if (result)
		rc = take_sample(result, out, sample_bytes);
	Py_XDECREF(result);
	return rc;
}

static int on_augment(void *ctx, const struct refrain_decoded *in,
	uint64_t seed, void *out, size_t sample_bytes)
{
	PyGILState_STATE state = PyGILState_Ensure();
	struct core *core = ctx;
	int rc = 0;

	if (core->closing || !core->augment)
		rc = -ECANCELED;
	else if (call_augment(core, in, seed, out, sample_bytes) < 0)
		rc = note_exception(core, core->augment);
	PyGILState_Release(state);
	return rc;
}

void callbacks_set(struct core *core, struct refrain_config *config)
{
	core->decoded_max_bytes = config->decoded_max_bytes;
	config->ctx = core;
	config->decode = core->decode ? on_decode : NULL;
	config->augment_fn = core->augment ? on_augment : NULL;
}

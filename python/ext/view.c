/* SPDX-License-Identifier: MIT */
/*
 * The arrays of a batch as memory that others look into: the buffer protocol,
 * for NumPy and memoryview, and DLPack (dlpack.c). Each look holds a reference
 * to the batch, so that the memory goes back after the last one.
 */
#include "ext_impl.h"

#include <stddef.h>
#include <string.h>

struct field {
	const char *name, *format;
	size_t offset; /* of the pointer in struct refrain_batch */
	int item, code;
	bool writable;
};

#define FIELD(n, format, item, code, writable)                                 \
	{                                                                      \
#n, format, offsetof(struct refrain_batch, n), item, code,     \
			writable                                               \
	}

/* struct refrain_crop in the notation of PEP 3118. */
#define CROP_FORMAT                                                            \
	"T{d:x:d:y:d:width:d:height:"                                          \
	"I:image_width:I:image_height:I:flip:I:reserved:}"

/* The type of data is that of the batch. */
static const struct field fields[] = {
	FIELD(data, NULL, 0, 0, true),
	FIELD(labels, "q", 8, 0, true),
	FIELD(indices, "Q", 8, 1, false),
	FIELD(substitutes, "Q", 8, 1, false),
	FIELD(echoes, "I", 4, 1, false),
	FIELD(seeds, "Q", 8, 1, false),
	FIELD(status, "i", 4, 0, false),
	FIELD(crops, CROP_FORMAT, sizeof(struct refrain_crop), -1, false),
};

struct view {
	PyObject ob_base;
	struct batch *batch;
	const struct field *field;
};

const struct field *field_find(const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

const struct field *field_data(void)
{
	return &fields[0];
}

static void data_layout(const struct refrain_batch *b, struct layout *out)
{
	static const struct {
		const char *format;
		int item, code;
	} types[] = {
		[REFRAIN_U8] = {"B", 1, 1},
		[REFRAIN_F16] = {"e", 2, 2},
		[REFRAIN_F32] = {"f", 4, 2},
	};
	int type = b->ndim == 4 ? b->type : REFRAIN_U8; /* records are bytes */

	out->format = types[type].format;
	out->item = types[type].item;
	out->code = types[type].code;
	out->ndim = (int)b->ndim;
	for (int i = 0; i < out->ndim; i++)
		out->shape[i] = (Py_ssize_t)b->shape[i];
}

int field_layout(
	struct batch *batch, const struct field *field, struct layout *out)
{
	const struct refrain_batch *b = batch->b;

	if (!b) {
		PyErr_SetString(PyExc_ValueError, "the batch was released");
		return -1;
	}
	*out = (struct layout){
		.format = field->format,
		.item = field->item,
		.code = field->code,
		.ndim = 1,
		.shape = {(Py_ssize_t)b->count},
		.readonly = batch->core->shares || !field->writable,
	};
	memcpy(&out->data, (const char *)b + field->offset, sizeof(out->data));
	if (!field->format)
		data_layout(b, out);
	out->bytes = out->item;
	for (int i = out->ndim - 1; i >= 0; i--) {
		out->strides[i] = out->bytes;
		out->bytes *= out->shape[i];
	}
	return 0;
}

/* -- The buffer protocol --------------------------------------------------- */

static void fill_buffer(struct layout *at, Py_buffer *out, int flags)
{
	union {
		const char *text;
		char *format; /* nobody writes to it */
	} format = {.text = at->format};

	out->buf = at->data;
	out->len = at->bytes;
	out->itemsize = at->item;
	out->readonly = at->readonly;
	out->ndim = at->ndim;
	out->format = flags & PyBUF_FORMAT ? format.format : NULL;
	out->shape = flags & PyBUF_ND ? at->shape : NULL;
	out->strides =
		(flags & PyBUF_STRIDES) == PyBUF_STRIDES ? at->strides : NULL;
	out->suboffsets = NULL;
	out->internal = at;
}

static int view_fill(struct batch *batch, const struct field *field,
	PyObject *owner, Py_buffer *out, int flags)
{
	struct layout *at = PyMem_Malloc(sizeof(*at));

	out->obj = NULL;
	if (!at) {
		(void)PyErr_NoMemory();
		return -1;
	}
	if (field_layout(batch, field, at) < 0) {
		PyMem_Free(at);
		return -1;
	}
	if (at->readonly && (flags & PyBUF_WRITABLE)) {
		PyMem_Free(at);
		PyErr_SetString(PyExc_BufferError, "the memory is read only");
		return -1;
	}
	fill_buffer(at, out, flags);
	out->obj = owner;
	Py_INCREF(owner);
	batch->exports++;
	return 0;
}

int batch_buffer(PyObject *self, Py_buffer *out, int flags)
{
	return view_fill((struct batch *)self, field_data(), self, out, flags);
}

void batch_buffer_done(PyObject *self, Py_buffer *buffer)
{
	((struct batch *)self)->exports--;
	PyMem_Free(buffer->internal);
}

static int view_buffer(PyObject *self, Py_buffer *out, int flags)
{
	struct view *view = (struct view *)self;

	return view_fill(view->batch, view->field, self, out, flags);
}

static void view_buffer_done(PyObject *self, Py_buffer *buffer)
{
	struct view *view = (struct view *)self;

	batch_buffer_done((PyObject *)view->batch, buffer);
}

/* -- The type -------------------------------------------------------------- */

PyObject *view_new(struct batch *batch, const struct field *field)
{
	struct view *view =
		PyObject_New(struct view, (PyTypeObject *)view_type);

	if (!view)
		return NULL;
	view->batch = batch;
	view->field = field;
	Py_INCREF((PyObject *)batch);
	return (PyObject *)view;
}

static void view_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct view *view = (struct view *)self;

	Py_DECREF((PyObject *)view->batch);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *view_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct view *view = (struct view *)self;

	return dlpack_export(view->batch, view->field, args, kwargs);
}

static PyObject *view_lent(PyObject *self, PyObject *unused)
{
	struct view *view = (struct view *)self;

	(void)unused;
	return dlpack_lent(view->batch, view->field);
}

static PyMethodDef view_methods[] = {
	{"__dlpack__", (PyCFunction)(void (*)(void))view_dlpack,
		METH_VARARGS | METH_KEYWORDS,
		"A DLPack capsule of the memory."},
	{"__dlpack_device__", dlpack_device, METH_NOARGS,
		"(1, 0): the memory of the host."},
	{"_lent", view_lent, METH_NOARGS,
		"A DLPack capsule of version 0 without a copy, though the "
		"memory may be read-only."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot view_slots[] = {
	{Py_tp_doc,
		"The memory of one array of a batch: for memoryview(), "
		"numpy.asarray() and from_dlpack()."},
	{Py_tp_new, cannot_new},
	{Py_tp_dealloc, view_dealloc},
	{Py_tp_methods, view_methods},
	{Py_bf_getbuffer, view_buffer},
	{Py_bf_releasebuffer, view_buffer_done},
	{0, NULL},
};

PyType_Spec view_spec = {
	.name = "refrain._refrain.View",
	.basicsize = sizeof(struct view),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = view_slots,
};

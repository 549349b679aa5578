/* SPDX-License-Identifier: MIT */
/* Shows the arrays of a batch as memory: to NumPy and memoryview by the buffer
 * protocol, and to other frameworks by DLPack (dlpack.c). Each view has a
 * reference to the batch, so the library gets the memory back after the last
 * view is freed. */
#include "ext_impl.h"

#include <stddef.h>
#include <string.h>

struct array {
	const char *name, *format;
	/* offset of the array's pointer in struct refrain_batch */
	size_t offset;
	int item, code;
	bool writable;
};

#define ARRAY(n, format, item, code, writable)                                 \
	{                                                                      \
#n, format, offsetof(struct refrain_batch, n), item, code,     \
			writable                                               \
	}

/* The members of struct refrain_crop in the notation of PEP 3118. */
#define CROP_FORMAT                                                            \
	"T{d:x:d:y:d:width:d:height:"                                          \
	"I:image_width:I:image_height:I:flip:I:reserved:}"

/* The arrays of a batch. The item type of `data` depends on the batch. */
static const struct array arrays[] = {
	ARRAY(data, NULL, 0, 0, true),
	ARRAY(labels, "q", 8, 0, true),
	ARRAY(indices, "Q", 8, 1, false),
	ARRAY(substitutes, "Q", 8, 1, false),
	ARRAY(echoes, "I", 4, 1, false),
	ARRAY(seeds, "Q", 8, 1, false),
	ARRAY(status, "i", 4, 0, false),
	ARRAY(crops, CROP_FORMAT, sizeof(struct refrain_crop), -1, false),
};

/* The arrays of a column in addition to its values. */
static const struct array offsets_array = {.format = "Q", .item = 8, .code = 1};
static const struct array lengths_array = {.format = "I", .item = 4, .code = 1};

struct place place_find(const char *name)
{
	for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++)
		if (strcmp(arrays[i].name, name) == 0)
			return (struct place){.array = &arrays[i]};
	return (struct place){.array = NULL};
}

struct place place_data(void)
{
	return (struct place){.array = &arrays[0]};
}

struct place place_values(const struct refrain_column *column)
{
	return (struct place){.column = column};
}

struct place place_offsets(const struct refrain_column *column)
{
	return (struct place){&offsets_array, column};
}

struct place place_lengths(const struct refrain_column *column)
{
	return (struct place){&lengths_array, column};
}

/* -- Layouts --------------------------------------------------------------- */

/* Fill in the layout of an array with this type and shape. NumPy has no
 * bfloat16. */
static void shaped_layout(
	int32_t type, uint32_t ndim, const uint64_t *shape, struct layout *out)
{
	static const struct {
		const char *format;
		int item, code;
	} types[] = {
		[REFRAIN_U8] = {"B", 1, 1},
		[REFRAIN_F16] = {"e", 2, 2},
		[REFRAIN_F32] = {"f", 4, 2},
		[REFRAIN_U16] = {"H", 2, 1},
		[REFRAIN_I16] = {"h", 2, 0},
		[REFRAIN_I32] = {"i", 4, 0},
		[REFRAIN_I64] = {"q", 8, 0},
		[REFRAIN_F64] = {"d", 8, 2},
	};

	out->format = types[type].format;
	out->item = types[type].item;
	out->code = types[type].code;
	out->ndim = (int)ndim;
	for (int i = 0; i < out->ndim; i++)
		out->shape[i] = (Py_ssize_t)shape[i];
}

static void batch_layout(const struct refrain_batch *b,
	const struct array *array, struct layout *out)
{
	const struct refrain_column *column;

	out->readonly = !array->writable;
	memcpy(&out->data, (const char *)b + array->offset, sizeof(out->data));
	if (array->format)
		return;
	/* The first column is the samples. Those of raw records are bytes,
	 * whatever the type of an image would be. */
	column = refrain_column_at(b, 0);
	shaped_layout(column->type, column->ndim, column->shape, out);
}

static void column_layout(const struct refrain_column *c,
	const struct array *array, struct layout *out)
{
	const void *data = c->data;

	if (array == &offsets_array) {
		data = c->offsets;
		out->shape[0]++;
	} else if (array == &lengths_array) {
		data = c->lengths;
	} else {
		shaped_layout(c->type, c->ndim, c->shape, out);
	}
	out->readonly = array != NULL;
	out->data = (void *)(uintptr_t)data;
}

/* Set the strides. A newer library may have a longer struct for crops. */
static void set_strides(const struct refrain_batch *b, struct layout *out)
{
	Py_ssize_t stride = out->item;

	out->bytes = out->item;
	if (out->code < 0)
		stride = (Py_ssize_t)b->crop_bytes;
	for (int i = out->ndim - 1; i >= 0; i--) {
		out->strides[i] = stride;
		stride *= out->shape[i];
		out->bytes *= out->shape[i];
	}
}

int place_layout(struct batch *batch, struct place place, struct layout *out)
{
	const struct refrain_batch *b = batch->b;

	if (!b) {
		PyErr_SetString(PyExc_ValueError, "the batch was released");
		return -1;
	}
	*out = (struct layout){
		.format = place.array ? place.array->format : NULL,
		.item = place.array ? place.array->item : 0,
		.code = place.array ? place.array->code : 0,
		.ndim = 1,
		.shape = {(Py_ssize_t)b->count},
	};
	if (place.column)
		column_layout(place.column, place.array, out);
	else
		batch_layout(b, place.array, out);
	out->readonly = out->readonly || batch->core->shares;
	set_strides(b, out);
	return 0;
}

/* -- The buffer protocol --------------------------------------------------- */

static void fill_buffer(struct layout *at, Py_buffer *out, int flags)
{
	union {
		const char *text;
		/* the buffer protocol has no const, but no consumer writes to
		 * it */
		char *format;
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

/* Returns why the array does not suit a consumer, or NULL. A consumer that does
 * not accept strides needs rows without gaps. */
static const char *misfit(const struct layout *at, int flags)
{
	if (at->readonly && (flags & PyBUF_WRITABLE))
		return "the memory is read only";
	if (at->ndim == 1 && at->strides[0] != at->item &&
		(flags & PyBUF_STRIDES) != PyBUF_STRIDES)
		return "the memory is not contiguous";
	return NULL;
}

static int view_fill(struct batch *batch, struct place place, PyObject *owner,
	Py_buffer *out, int flags)
{
	struct layout *at = PyMem_Malloc(sizeof(*at));
	const char *why;

	out->obj = NULL;
	if (!at) {
		(void)PyErr_NoMemory();
		return -1;
	}
	if (place_layout(batch, place, at) < 0) {
		PyMem_Free(at);
		return -1;
	}
	why = misfit(at, flags);
	if (why) {
		PyMem_Free(at);
		PyErr_SetString(PyExc_BufferError, why);
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
	return view_fill((struct batch *)self, place_data(), self, out, flags);
}

void batch_buffer_done(PyObject *self, Py_buffer *buffer)
{
	((struct batch *)self)->exports--;
	PyMem_Free(buffer->internal);
}

int view_buffer(PyObject *self, Py_buffer *out, int flags)
{
	struct view *view = (struct view *)self;

	return view_fill(view->batch, view->place, self, out, flags);
}

void view_buffer_done(PyObject *self, Py_buffer *buffer)
{
	struct view *view = (struct view *)self;

	batch_buffer_done((PyObject *)view->batch, buffer);
}

/* -- The type -------------------------------------------------------------- */

PyObject *view_of_type(PyObject *type, struct batch *batch, struct place place)
{
	struct view *view = PyObject_New(struct view, (PyTypeObject *)type);

	if (!view)
		return NULL;
	view->batch = batch;
	view->place = place;
	Py_INCREF((PyObject *)batch);
	return (PyObject *)view;
}

PyObject *view_new(struct batch *batch, struct place place)
{
	return view_of_type(view_type, batch, place);
}

void view_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct view *view = (struct view *)self;

	Py_DECREF((PyObject *)view->batch);
	PyObject_Free(self);
	Py_DECREF(type);
}

PyObject *view_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct view *view = (struct view *)self;

	return dlpack_export(view->batch, view->place, args, kwargs);
}

PyObject *view_lent(PyObject *self, PyObject *unused)
{
	struct view *view = (struct view *)self;

	(void)unused;
	return dlpack_lent(view->batch, view->place);
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

/* SPDX-License-Identifier: MIT */
/* A Column: one field of the examples of a batch, such as batch["image"]. It
 * gives a view of the field's values. It also has the kind of the field; and if
 * examples have several rows each, the numbers of the first and last row of
 * each example. */
#include "ext_impl.h"

static const struct refrain_column *column_of(PyObject *self)
{
	struct view *view = (struct view *)self;

	if (view->batch->b)
		return view->place.column;
	PyErr_SetString(PyExc_ValueError, "the batch was released");
	return NULL;
}

PyObject *column_new(struct batch *batch, const struct refrain_column *column)
{
	return view_of_type(column_type, batch, place_values(column));
}

static PyObject *get_values(PyObject *self, void *unused)
{
	struct view *view = (struct view *)self;

	(void)unused;
	if (!column_of(self))
		return NULL;
	return as_array(view_new(view->batch, view->place));
}

static PyObject *get_offsets(PyObject *self, void *unused)
{
	const struct refrain_column *c = column_of(self);
	struct view *view = (struct view *)self;

	(void)unused;
	if (c && c->offsets)
		return as_array(view_new(view->batch, place_offsets(c)));
	if (!c)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *get_lengths(PyObject *self, void *unused)
{
	const struct refrain_column *c = column_of(self);
	struct view *view = (struct view *)self;

	(void)unused;
	if (c && c->lengths)
		return as_array(view_new(view->batch, place_lengths(c)));
	if (!c)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *get_name(PyObject *self, void *unused)
{
	const struct refrain_column *c = column_of(self);

	(void)unused;
	return c ? PyUnicode_DecodeFSDefault(c->name) : NULL;
}

static PyObject *get_kind(PyObject *self, void *unused)
{
	static const char *const kinds[] = {
		[REFRAIN_KIND_IMAGE] = "image",
		[REFRAIN_KIND_CLASS] = "class",
		[REFRAIN_KIND_CLASSES] = "classes",
		[REFRAIN_KIND_BOXES] = "boxes",
		[REFRAIN_KIND_POINTS] = "points",
		[REFRAIN_KIND_MASK] = "mask",
		[REFRAIN_KIND_AUDIO] = "audio",
		[REFRAIN_KIND_TOKENS] = "tokens",
		[REFRAIN_KIND_ARRAY] = "array",
		[REFRAIN_KIND_BYTES] = "bytes",
	};
	const struct refrain_column *c = column_of(self);
	int32_t n = sizeof(kinds) / sizeof(*kinds);

	(void)unused;
	if (!c)
		return NULL;
	if (c->kind <= 0 || c->kind >= n)
		return PyUnicode_FromFormat("kind %d", (int)c->kind);
	return PyUnicode_FromString(kinds[c->kind]);
}

/* A function in Python does the work, because NumPy makes the array. */
static PyObject *column_padded(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *module, *function = NULL, *all = NULL, *result = NULL;
	Py_ssize_t n = PyTuple_Size(args);

	if (!column_of(self))
		return NULL;
	module = PyImport_ImportModule("refrain._columns");
	if (module)
		function = PyObject_GetAttrString(module, "padded");
	if (function)
		all = PyTuple_New(n + 1);
	for (Py_ssize_t i = 0; all && i <= n; i++) {
		PyObject *arg = i ? PyTuple_GetItem(args, i - 1) : self;

		Py_INCREF(arg);
		/* cannot fail: i is within the new tuple */
		(void)PyTuple_SetItem(all, i, arg);
	}
	if (all)
		result = PyObject_Call(function, all, kwargs);
	Py_XDECREF(all);
	Py_XDECREF(function);
	Py_XDECREF(module);
	return result;
}

static PyObject *column_repr(PyObject *self)
{
	struct view *view = (struct view *)self;
	PyObject *name, *text;

	if (!view->batch->b)
		return PyUnicode_FromString("<refrain.Column, released>");
	name = get_name(self, NULL);
	text = name ? PyUnicode_FromFormat("<refrain.Column %R of %u examples>",
			      name, (unsigned)view->batch->b->count)
		    : NULL;
	Py_XDECREF(name);
	return text;
}

static PyMethodDef column_methods[] = {
	{"padded", (PyCFunction)(void (*)(void))column_padded,
		METH_VARARGS | METH_KEYWORDS,
		"padded(rows=None, fill=0)\n--\n\nA new array of shape "
		"(count, rows, ...) in which each example has its rows "
		"first,\nand then `fill`. rows=None is the most rows of an "
		"example in the batch. ValueError\nif an example has more, "
		"or if each example has one row."},
	{"__dlpack__", (PyCFunction)(void (*)(void))view_dlpack,
		METH_VARARGS | METH_KEYWORDS,
		"A DLPack capsule of the values."},
	{"__dlpack_device__", dlpack_device, METH_NOARGS,
		"(1, 0): the memory of the host."},
	{"_lent", view_lent, METH_NOARGS,
		"A DLPack capsule of version 0 without a copy, though the "
		"memory may be read-only."},
	{NULL, NULL, 0, NULL},
};

#define ATTRIBUTE(n, get, doc)                                                 \
	{                                                                      \
		n, get, NULL, doc, NULL                                        \
	}

static PyGetSetDef column_attributes[] = {
	ATTRIBUTE("values", get_values,
		"The values, an array. Its first dimension are the examples, "
		"or with offsets the\nrows of all examples."),
	ATTRIBUTE("offsets", get_offsets,
		"uint64 of shape (count + 1,): example i has the rows "
		"offsets[i] to\noffsets[i + 1] - 1 of values. None if each "
		"example has one row."),
	ATTRIBUTE("lengths", get_lengths,
		"uint32 of shape (count,): the number of rows of each "
		"example. None if each\nexample has one row."),
	ATTRIBUTE("name", get_name, "The name of the field."),
	ATTRIBUTE("kind", get_kind,
		"The kind of the field: 'image', 'class', and so on."),
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot column_slots[] = {
	{Py_tp_doc,
		"One field of the examples of a batch: batch['image']. The "
		"object itself is the\nmemory of its values, for memoryview(), "
		"numpy.asarray() and from_dlpack()."},
	{Py_tp_new, cannot_new},
	{Py_tp_dealloc, view_dealloc},
	{Py_tp_repr, column_repr},
	{Py_tp_methods, column_methods},
	{Py_tp_getset, column_attributes},
	{Py_bf_getbuffer, view_buffer},
	{Py_bf_releasebuffer, view_buffer_done},
	{0, NULL},
};

PyType_Spec column_spec = {
	.name = "refrain._refrain.Column",
	.basicsize = sizeof(struct view),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = column_slots,
};

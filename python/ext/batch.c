/* SPDX-License-Identifier: MIT */
/* A batch that the library lends to a Python object. The library gets it back
 * by release(), or when the object is freed. A view of the batch's memory has a
 * reference to the object, so the object is freed after all its views. */
#include "ext_impl.h"

PyObject *batch_new(
	struct core *core, const struct refrain_batch *b, PyObject *targets)
{
	struct batch *self =
		PyObject_GC_New(struct batch, (PyTypeObject *)batch_type);

	if (!self) {
		refrain_release(b);
		return NULL;
	}
	self->core = core_ref(core);
	self->b = b;
	self->targets = targets;
	Py_XINCREF(targets);
	self->exports = 0;
	PyObject_GC_Track(self);
	return (PyObject *)self;
}

PyObject *cannot_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	(void)args;
	(void)kwargs;
	return PyErr_Format(
		PyExc_TypeError, "a %R comes from a Loader", (PyObject *)type);
}

static int batch_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	Py_VISIT(((struct batch *)object)->targets);
	return 0;
}

static int batch_clear(PyObject *object)
{
	Py_CLEAR(((struct batch *)object)->targets);
	return 0;
}

static void batch_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	struct batch *self = (struct batch *)object;

	PyObject_GC_UnTrack(object);
	refrain_release(self->b);
	core_unref(self->core);
	Py_XDECREF(self->targets);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

/* Returns the batch; or NULL with an exception if it was released. */
static const struct refrain_batch *lent(PyObject *object)
{
	struct batch *self = (struct batch *)object;

	if (!self->b)
		PyErr_SetString(PyExc_ValueError, "the batch was released");
	return self->b;
}

/* -- Methods --------------------------------------------------------------- */

static PyObject *batch_release(PyObject *object, PyObject *unused)
{
	struct batch *self = (struct batch *)object;

	(void)unused;
	if (self->exports > 0)
		return PyErr_Format(PyExc_BufferError,
			"the batch has %zd views: delete them first",
			self->exports);
	refrain_release(self->b);
	self->b = NULL;
	Py_RETURN_NONE;
}

static PyObject *batch_view(PyObject *object, PyObject *name)
{
	const struct refrain_column *column;
	struct place place;
	PyObject *bytes;

	if (!PyUnicode_Check(name))
		return PyErr_Format(
			PyExc_TypeError, "the name of an array must be a str");
	bytes = PyUnicode_AsUTF8String(name);
	if (!bytes || !lent(object)) {
		Py_XDECREF(bytes);
		return NULL;
	}
	place = place_find(PyBytes_AsString(bytes));
	column = refrain_column_find(lent(object), PyBytes_AsString(bytes));
	Py_DECREF(bytes);
	if (place.array)
		return view_new((struct batch *)object, place);
	if (!column)
		return PyErr_Format(
			PyExc_ValueError, "a batch has no array %R", name);
	return view_new((struct batch *)object, place_values(column));
}

static PyObject *batch_keys(PyObject *object, PyObject *unused)
{
	const struct refrain_batch *b = lent(object);
	PyObject *names = b ? PyTuple_New((Py_ssize_t)b->column_count) : NULL;

	(void)unused;
	for (uint32_t i = 0; names && i < b->column_count; i++) {
		PyObject *name = PyUnicode_DecodeFSDefault(
			refrain_column_at(b, i)->name);

		if (!name || PyTuple_SetItem(names, i, name) < 0)
			Py_CLEAR(names);
	}
	return names;
}

/* Raise a KeyError that lists the columns. */
static PyObject *no_column(PyObject *object, PyObject *name)
{
	PyObject *names = batch_keys(object, NULL);

	if (names)
		(void)PyErr_Format(PyExc_KeyError,
			"a batch has no column %R, only %R", name, names);
	Py_XDECREF(names);
	return NULL;
}

static PyObject *batch_column(PyObject *object, PyObject *name)
{
	const struct refrain_column *column;
	PyObject *bytes;

	if (!lent(object))
		return NULL;
	if (!PyUnicode_Check(name))
		return no_column(object, name);
	bytes = PyUnicode_AsUTF8String(name);
	if (!bytes)
		return NULL;
	column = refrain_column_find(lent(object), PyBytes_AsString(bytes));
	Py_DECREF(bytes);
	if (!column)
		return no_column(object, name);
	return column_new((struct batch *)object, column);
}

static PyObject *batch_state(PyObject *object, PyObject *unused)
{
	const struct refrain_batch *b = lent(object);

	(void)unused;
	return b ? core_state(((struct batch *)object)->core, b->step + 1)
		 : NULL;
}

static PyObject *batch_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return dlpack_export((struct batch *)self, place_data(), args, kwargs);
}

static PyMethodDef batch_methods[] = {
	{"release", batch_release, METH_NOARGS,
		"release()\n--\n\nGive the batch back now. Raises BufferError "
		"while views of it are alive."},
	{"view", batch_view, METH_O,
		"view(name)\n--\n\nThe memory of an array, for memoryview() "
		"and from_dlpack(), without NumPy. `name`\nis data, labels, "
		"indices, substitutes, echoes, seeds, status or crops, or the "
		"name of a column;\nelse ValueError."},
	{"keys", batch_keys, METH_NOARGS,
		"keys()\n--\n\nThe names of the columns: batch[name] is a "
		"Column."},
	{"state_dict", batch_state, METH_NOARGS,
		"state_dict()\n--\n\nThe position after this batch, for "
		"Loader.load_state_dict(). A trainer that\nfetches batches "
		"ahead saves that of the last batch it has used. ClosedError\n"
		"after the loader was closed."},
	{"__dlpack__", (PyCFunction)(void (*)(void))batch_dlpack,
		METH_VARARGS | METH_KEYWORDS, "A DLPack capsule of data."},
	{"__dlpack_device__", dlpack_device, METH_NOARGS,
		"(1, 0): the memory of the host."},
	{NULL, NULL, 0, NULL},
};

/* -- Attributes ------------------------------------------------------------ */

static PyObject *get_array(PyObject *object, void *name)
{
	if (!lent(object))
		return NULL;
	return as_array(view_new((struct batch *)object, place_find(name)));
}

/* Targets of damaged examples are those of the examples that were delivered in
 * their place. */
static PyObject *get_targets(PyObject *object, void *unused)
{
	PyObject *targets = ((struct batch *)object)->targets;
	PyObject *indices, *result;

	(void)unused;
	if (!targets)
		return get_array(object, (void *)(uintptr_t) "labels");
	indices = get_array(object, (void *)(uintptr_t) "substitutes");
	if (!indices)
		return NULL;
	if (PyCallable_Check(targets))
		result = PyObject_CallFunctionObjArgs(targets, indices, NULL);
	else
		result = PyObject_GetItem(targets, indices);
	Py_DECREF(indices);
	return result;
}

#define GET_NUMBER(name, member)                                               \
	static PyObject *name(PyObject *object, void *unused)                  \
	{                                                                      \
		const struct refrain_batch *b = lent(object);                  \
                                                                               \
		(void)unused;                                                  \
		return b ? PyLong_FromUnsignedLongLong(b->member) : NULL;      \
	}
GET_NUMBER(get_count, count)
GET_NUMBER(get_step, step)
GET_NUMBER(get_epoch, epoch)
GET_NUMBER(get_fresh, fresh)
GET_NUMBER(get_data_bytes, data_bytes)

static PyObject *get_ends_epoch(PyObject *object, void *unused)
{
	const struct refrain_batch *b = lent(object);

	(void)unused;
	return b ? PyBool_FromLong(b->ends_epoch) : NULL;
}

static PyObject *get_ended_epoch(PyObject *object, void *unused)
{
	const struct refrain_batch *b = lent(object);

	(void)unused;
	if (!b || b->ends_epoch)
		return b ? PyLong_FromUnsignedLongLong(b->ended_epoch) : NULL;
	Py_RETURN_NONE;
}

static PyObject *get_shape(PyObject *object, void *unused)
{
	const struct refrain_batch *b = lent(object);
	PyObject *shape = b ? PyTuple_New((Py_ssize_t)b->ndim) : NULL;

	(void)unused;
	for (uint32_t i = 0; shape && i < b->ndim; i++) {
		PyObject *side = PyLong_FromUnsignedLongLong(b->shape[i]);

		if (!side || PyTuple_SetItem(shape, i, side) < 0)
			Py_CLEAR(shape);
	}
	return shape;
}

static PyObject *get_address(PyObject *object, void *unused)
{
	const struct refrain_batch *b = lent(object);

	(void)unused;
	return b ? PyLong_FromVoidPtr((void *)(uintptr_t)b->data) : NULL;
}

static Py_ssize_t batch_length(PyObject *object)
{
	const struct refrain_batch *b = lent(object);

	return b ? (Py_ssize_t)b->count : -1;
}

#define ARRAY(n, doc)                                                          \
	{                                                                      \
		n, get_array, NULL, doc, (void *)(uintptr_t)n                  \
	}
#define ATTRIBUTE(n, get, doc)                                                 \
	{                                                                      \
		n, get, NULL, doc, NULL                                        \
	}

static PyGetSetDef batch_attributes[] = {
	ARRAY("data",
		"The samples: uint8, float16 or float32 of shape (count, "
		"height, width, 3), with\nlayout='nchw' (count, 3, height, "
		"width); of records uint8 of (count, bytes).\nMay be written "
		"to, unless the loader shares."),
	ARRAY("labels",
		"Class numbers: int64 of shape (count,); -1 for none. May be "
		"written to, unless\nthe loader shares."),
	ARRAY("indices",
		"The examples that were scheduled: uint64 of shape (count,)."),
	ARRAY("substitutes",
		"The examples in the batch: uint64 of shape (count,). They "
		"differ from indices\nwhere a damaged example was "
		"substituted."),
	ARRAY("echoes",
		"uint32 of shape (count,): 0 for a fresh example, 1 for its "
		"first echo, and so on."),
	ARRAY("seeds", "Seeds of the augmentation: uint64 of shape (count,)."),
	ARRAY("status",
		"int32 of shape (count,): 0, or -errno of the damage of the "
		"scheduled example."),
	ARRAY("crops",
		"The part of the image that became each sample: a structured "
		"array of shape\n(count,) with x, y, width, height (float64, "
		"pixels of the upright image),\nimage_width, image_height and "
		"flip (uint32; 1: mirrored, left to\nright). All 0 for a "
		"sample that was not made from an image."),
	ATTRIBUTE("targets", get_targets,
		"Values of Loader(targets=...) for the examples in the batch; "
		"labels without it.\nRaises what targets raises."),
	ATTRIBUTE("count", get_count, "Number of examples."),
	ATTRIBUTE("step", get_step, "Number of the step in the run, from 0."),
	ATTRIBUTE("epoch", get_epoch,
		"The epoch of the last fresh example in this batch."),
	ATTRIBUTE("fresh", get_fresh,
		"Number of examples that are served for the first time."),
	ATTRIBUTE("ends_epoch", get_ends_epoch,
		"True if this batch has the last fresh example of an epoch on "
		"this rank."),
	ATTRIBUTE("ended_epoch", get_ended_epoch,
		"The epoch that ends with this batch, or None. Some of its "
		"fresh examples may\nbelong to the next epoch."),
	ATTRIBUTE("shape", get_shape, "The shape of data, a tuple."),
	ATTRIBUTE("nbytes", get_data_bytes, "Bytes of data."),
	ATTRIBUTE("address", get_address,
		"The address of data in the library's memory."),
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot batch_slots[] = {
	{Py_tp_doc,
		"A batch that the loader lends. Its arrays lie in the "
		"library's memory, which goes\nback when this object and all "
		"views of it have died, or by release(). At most\n"
		"batches_ahead + 1 batches can be held. All attributes raise "
		"ValueError after\nrelease()."},
	{Py_tp_new, cannot_new},
	{Py_tp_dealloc, batch_dealloc},
	{Py_tp_traverse, batch_traverse},
	{Py_tp_clear, batch_clear},
	{Py_tp_methods, batch_methods},
	{Py_tp_getset, batch_attributes},
	{Py_sq_length, batch_length},
	{Py_mp_subscript, batch_column},
	{Py_bf_getbuffer, batch_buffer},
	{Py_bf_releasebuffer, batch_buffer_done},
	{0, NULL},
};

PyType_Spec batch_spec = {
	.name = "refrain._refrain.Batch",
	.basicsize = sizeof(struct batch),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = batch_slots,
};

/* SPDX-License-Identifier: MIT */
/*
 * DLPack: lets frameworks take each other's tensors without a copy. The structs
 * are those of its ABI, versions 0 and 1. A tensor of version 0 has no flag for
 * read-only memory, and PyTorch ignores the flag of version 1. Both get a copy
 * of read-only memory, because a write to the memory of a share would kill the
 * process.
 */
#include "ext_impl.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE_CPU 1
#define FLAG_READ_ONLY 1
#define FLAG_COPIED 2

struct dl_tensor {
	void *data;
	int32_t device, device_id;
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides; /* strides, counted in items */
	uint64_t byte_offset;
};

/* The struct of version 0. */
struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *self);
};

/* The struct of version 1. */
struct dl_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dl_versioned *self);
	uint64_t flags;
	struct dl_tensor tensor;
};

/* A tensor of either version, with the memory that it points to. */
struct export
{
	union {
		struct dl_managed managed;
		struct dl_versioned versioned;
	} as;
	int64_t shape[6], strides[6];
	/* batch that has the memory; NULL: `copy` has it */
	struct batch *batch;
	void *copy;
};

/* Free a tensor. The framework calls this in any thread, even while the
 * interpreter ends. */
static void export_free(struct export *e)
{
	PyGILState_STATE state;

	if (e->batch && Py_IsInitialized()) {
		state = PyGILState_Ensure();
		e->batch->exports--;
		Py_DECREF((PyObject *)e->batch);
		PyGILState_Release(state);
	}
	free(e->copy);
	free(e);
}

static void delete_managed(struct dl_managed *self)
{
	export_free(self->context);
}

static void delete_versioned(struct dl_versioned *self)
{
	export_free(self->context);
}

/* Free a capsule whose tensor no framework has taken. */
static void capsule_free(PyObject *capsule)
{
	const char *name = PyCapsule_GetName(capsule);
	struct dl_managed *managed;
	struct dl_versioned *versioned;

	if (name && strcmp(name, "dltensor") == 0) {
		managed = PyCapsule_GetPointer(capsule, name);
		managed->deleter(managed);
	} else if (name && strcmp(name, "dltensor_versioned") == 0) {
		versioned = PyCapsule_GetPointer(capsule, name);
		versioned->deleter(versioned);
	}
}

static void fill_tensor(
	struct export *e, const struct layout *at, struct dl_tensor *out)
{
	for (int i = 0; i < at->ndim; i++) {
		e->shape[i] = at->shape[i];
		e->strides[i] = at->strides[i] / at->item;
	}
	*out = (struct dl_tensor){
		.data = e->copy ? e->copy : at->data,
		.device = DEVICE_CPU,
		.ndim = at->ndim,
		.code = (uint8_t)at->code,
		.bits = (uint8_t)(at->item * 8),
		.lanes = 1,
		.shape = e->shape,
		.strides = e->strides,
	};
}

static PyObject *capsule_of(
	struct export *e, const struct layout *at, bool versioned)
{
	PyObject *capsule;

	if (versioned) {
		e->as.versioned = (struct dl_versioned){
			.major = 1,
			.context = e,
			.deleter = delete_versioned,
			.flags = e->copy       ? FLAG_COPIED
				: at->readonly ? FLAG_READ_ONLY
					       : 0,
		};
		fill_tensor(e, at, &e->as.versioned.tensor);
		capsule = PyCapsule_New(
			&e->as, "dltensor_versioned", capsule_free);
	} else {
		e->as.managed = (struct dl_managed){
			.context = e, .deleter = delete_managed};
		fill_tensor(e, at, &e->as.managed.tensor);
		capsule = PyCapsule_New(&e->as, "dltensor", capsule_free);
	}
	if (!capsule)
		export_free(e);
	return capsule;
}

/* Copy an array without the GIL. The batch counts one view more during it, so
 * that no other thread releases it. */
static void *copy_of(struct batch *batch, const struct layout *at)
{
	void *copy = aligned_alloc(64, ((size_t)at->bytes + 64) / 64 * 64);

	if (!copy)
		return NULL;
	batch->exports++;
	Py_BEGIN_ALLOW_THREADS memcpy(copy, at->data, (size_t)at->bytes);
	Py_END_ALLOW_THREADS batch->exports--;
	return copy;
}

static struct export *export_new(
	struct batch *batch, const struct layout *at, bool copied)
{
	struct export *e = calloc(1, sizeof(*e));

	if (e && copied)
		e->copy = copy_of(batch, at);
	if (!e || (copied && !e->copy)) {
		free(e);
		(void)PyErr_NoMemory();
		return NULL;
	}
	if (copied)
		return e;
	e->batch = batch;
	batch->exports++;
	Py_INCREF((PyObject *)batch);
	return e;
}

/* The keyword arguments of __dlpack__(). */
struct asked {
	PyObject *stream, *max_version, *device, *copy;
};

static int check_asked(const struct asked *a)
{
	long type = DEVICE_CPU, number = 0;

	if (a->device != Py_None &&
		!PyArg_ParseTuple(a->device, "ll", &type, &number))
		return -1;
	if (type == DEVICE_CPU && number == 0 && a->stream == Py_None)
		return 0;
	PyErr_SetString(PyExc_BufferError,
		"the memory is on the host: stream must be None, and dl_device "
		"(1, 0)");
	return -1;
}

static int is_versioned(const struct asked *a)
{
	long major = 0, minor = 0;

	if (a->max_version != Py_None &&
		!PyArg_ParseTuple(a->max_version, "ll", &major, &minor))
		return -1;
	return major >= 1;
}

/* Is the caller PyTorch? torch.from_dlpack() is a function written in Python,
 * so its module is that of the calling frame. */
static bool torch_asks(void)
{
	/* borrowed reference, like the name below */
	PyObject *globals = PyEval_GetGlobals();
	PyObject *name =
		globals ? PyDict_GetItemString(globals, "__name__") : NULL;
	PyObject *text = name && PyUnicode_Check(name)
		? PyUnicode_AsUTF8String(name)
		: NULL;
	const char *module = text ? PyBytes_AsString(text) : NULL;
	bool is = module &&
		(strcmp(module, "torch") == 0 ||
			strncmp(module, "torch.", 6) == 0);

	if (!text)
		/* the name has surrogates, so it is not that of torch */
		PyErr_Clear();
	Py_XDECREF(text);
	return is;
}

static bool is_copied(
	const struct asked *a, const struct layout *at, bool versioned)
{
	if (a->copy == Py_True)
		return true;
	if (!at->readonly)
		return false;
	return !versioned || (a->copy != Py_False && torch_asks());
}

/* Fill in the layout of an array for DLPack. Returns -1 with an exception. */
static int tensor_layout(
	struct batch *batch, struct place place, struct layout *out)
{
	if (place_layout(batch, place, out) < 0)
		return -1;
	if (out->code >= 0)
		return 0;
	PyErr_SetString(PyExc_BufferError,
		"DLPack has no structs: take a column of the array, as in "
		"batch.crops['x']");
	return -1;
}

PyObject *dlpack_export(struct batch *batch, struct place place, PyObject *args,
	PyObject *kwargs)
{
	static char *names[] = {
		"stream", "max_version", "dl_device", "copy", NULL};
	struct asked a = {Py_None, Py_None, Py_None, Py_None};
	struct layout at;
	struct export *e;
	int versioned;
	bool copied;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names,
		    &a.stream, &a.max_version, &a.device, &a.copy) ||
		check_asked(&a) < 0 || tensor_layout(batch, place, &at) < 0)
		return NULL;
	versioned = is_versioned(&a);
	if (versioned < 0)
		return NULL;
	copied = is_copied(&a, &at, versioned > 0);
	if (copied && a.copy == Py_False) {
		PyErr_SetString(PyExc_BufferError,
			"the memory is read only, and this version of DLPack "
			"has no flag for that: it must be copied");
		return NULL;
	}
	e = export_new(batch, &at, copied);
	return e ? capsule_of(e, &at, versioned) : NULL;
}

PyObject *dlpack_lent(struct batch *batch, struct place place)
{
	struct layout at;
	struct export *e;

	if (tensor_layout(batch, place, &at) < 0)
		return NULL;
	e = export_new(batch, &at, false);
	return e ? capsule_of(e, &at, false) : NULL;
}

PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_BuildValue("(ii)", DEVICE_CPU, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * |The type from which refrain.Loader is made: opens a loader, iterates by
 * epochs, |and answers questions about it. The states of an object: | |
 * new --__init__--> between epochs --iter()--> in an epoch |
 * ^                        | |                               +-----
 * StopIteration ----+ | |close() is allowed in each state.
 */
#include "ext_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JSON_BYTES 16384
#define ECHO_LINE_BYTES 32

struct loader {
	PyObject ob_base;
	struct core *core; /* handle of the library; NULL: not opened */
	PyObject *targets;
	double timeout_s; /* time limit of a wait; negative: none */
	uint64_t epochs;  /* number of epochs of the run */
	/* number of steps of the run if all epochs have the same number;
	 * otherwise 0 */
	uint64_t total;
	uint64_t epoch; /* epoch in which iter() is, or which it begins next */
	uint64_t stop;	/* step of the run at which the epoch ends */
	uint64_t step;	/* number of the next step */
	bool iterating;
	/* the end of an epoch is known only when it comes, because it depends
	 * on time */
	bool moves;
	bool ended; /* the run has ended */
};

/* -- Opening --------------------------------------------------------------- */

int config_set_members(struct refrain_config *config, PyObject *members)
{
	PyObject *name, *text;
	Py_ssize_t at = 0;

	while (PyDict_Next(members, &at, &name, &text)) {
		const char *n = PyBytes_AsString(name);
		char *t;
		int rc;

		/* This call also refuses a text with a NUL. */
		if (!n || PyBytes_AsStringAndSize(text, &t, NULL) < 0)
			return -1;
		rc = refrain_config_set(config, n, t);
		if (rc < 0) {
			(void)raise_open(rc, refrain_message(NULL), Py_None);
			return -1;
		}
	}
	return 0;
}

static int set_cpus(struct refrain_config *config, PyObject *cpus)
{
	char *bytes;
	Py_ssize_t n;

	if (cpus == Py_None)
		return 0;
	if (PyBytes_AsStringAndSize(cpus, &bytes, &n) < 0)
		return -1;
	config->cpus = (const uint32_t *)(const void *)bytes;
	config->cpu_count = (uint32_t)((size_t)n / sizeof(uint32_t));
	return 0;
}

int config_set_state(struct refrain_config *config, PyObject *state)
{
	char *bytes;
	Py_ssize_t n;

	if (state == Py_None)
		return 0;
	if (PyBytes_AsStringAndSize(state, &bytes, &n) < 0)
		return -1;
	config->state = bytes;
	config->state_bytes = (size_t)n;
	return 0;
}

static PyObject *not_none(PyObject *object)
{
	if (object == Py_None)
		return NULL;
	Py_INCREF(object);
	return object;
}

static uint64_t epoch_end(
	const struct loader *self, struct refrain_loader *l, uint64_t epoch)
{
	if (self->total)
		return (epoch + 1) * self->total / self->epochs;
	return refrain_epoch_end(l, epoch);
}

/* Find the first epoch that ends behind the next step. */
static void find_epoch(struct loader *self, struct refrain_loader *l)
{
	while (self->epoch + 1 < self->epochs &&
		epoch_end(self, l, self->epoch) <= self->step)
		self->epoch++;
	self->stop = UINT64_MAX; /* the last epoch ends with the run */
	if (self->epoch + 1 < self->epochs)
		self->stop = epoch_end(self, l, self->epoch);
}

static void note_opened(
	struct loader *self, const struct refrain_config *config, bool even)
{
	self->epochs = config->epochs ? config->epochs : 1;
	self->moves = config->echo == REFRAIN_ECHO_AUTO;
	self->step = refrain_step(self->core->l);
	self->total = even ? self->step + refrain_steps_left(self->core->l) : 0;
	self->epoch = 0;
	self->iterating = self->ended = false;
	find_epoch(self, self->core->l);
}

static int loader_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"members", "path", "decode", "augment_fn",
		"targets", "cpus", "state", "timeout", "even", NULL};
	struct loader *self = (struct loader *)object;
	PyObject *members, *path, *decode, *augment, *targets, *cpus, *state;
	struct refrain_config config;
	double timeout_s;
	int even;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOOOOdp", names,
		    &PyDict_Type, &members, &path, &decode, &augment, &targets,
		    &cpus, &state, &timeout_s, &even))
		return -1;
	if (self->core) {
		PyErr_SetString(
			PyExc_RuntimeError, "the loader is already open");
		return -1;
	}
	refrain_config_init(&config);
	if (config_set_members(&config, members) < 0 ||
		set_cpus(&config, cpus) < 0 ||
		config_set_state(&config, state) < 0)
		return -1;
	self->core = core_new();
	if (!self->core)
		return PyErr_NoMemory(), -1;
	self->core->decode = not_none(decode);
	self->core->augment = not_none(augment);
	self->targets = not_none(targets);
	self->timeout_s = timeout_s;
	callbacks_set(self->core, &config);
	if (core_open(self->core, &config, args, path) < 0)
		return -1;
	note_opened(self, &config, even);
	return 0;
}

/* Returns the handle, or NULL with an exception. */
static struct refrain_loader *handle(PyObject *object)
{
	struct loader *self = (struct loader *)object;

	if (self->core)
		return core_handle(self->core);
	PyErr_SetString(PyExc_ValueError, "the loader was not opened");
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

static int loader_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct loader *self = (struct loader *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->targets);
	if (self->core) {
		Py_VISIT(self->core->decode);
		Py_VISIT(self->core->augment);
		Py_VISIT(self->core->cause);
	}
	return 0;
}

/* Close the loader before the references are dropped: after that, no thread
 * calls the functions that they refer to. */
static int loader_clear(PyObject *object)
{
	struct loader *self = (struct loader *)object;

	if (self->core) {
		/* only close() reports the reads that were left behind */
		(void)core_close(self->core);
		Py_CLEAR(self->core->decode);
		Py_CLEAR(self->core->augment);
		Py_CLEAR(self->core->cause);
	}
	Py_CLEAR(self->targets);
	return 0;
}

static void loader_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	(void)loader_clear(object);
	core_unref(((struct loader *)object)->core);
	release(object);
	Py_DECREF(type);
}

static PyObject *loader_close(PyObject *object, PyObject *unused)
{
	struct loader *self = (struct loader *)object;

	(void)unused;
	return PyLong_FromLong(self->core ? core_close(self->core) : 0);
}

/* Close the loader, so that __init__ can open another one. */
static PyObject *loader_reset(PyObject *object, PyObject *unused)
{
	struct loader *self = (struct loader *)object;

	(void)unused;
	(void)loader_clear(object);
	core_unref(self->core);
	self->core = NULL;
	Py_RETURN_NONE;
}

/* -- Iterating ------------------------------------------------------------- */

static PyObject *loader_iter(PyObject *object)
{
	struct loader *self = (struct loader *)object;
	struct refrain_loader *l = handle(object);

	if (!l)
		return NULL;
	if (self->ended)
		return PyErr_Format(PyExc_RuntimeError,
			"the run of %llu epochs is over: open another loader, "
			"or one with more epochs",
			(unsigned long long)self->epochs);
	if (!self->iterating)
		find_epoch(self, l);
	self->iterating = true;
	Py_INCREF(object);
	return object;
}

/* Is the epoch over? The steps that were returned are planned, so the end of
 * their epoch is known. */
static bool epoch_over(struct loader *self)
{
	if (self->moves && self->stop != UINT64_MAX && self->core->l)
		self->stop = epoch_end(self, self->core->l, self->epoch);
	return self->step >= self->stop;
}

static PyObject *next_batch(struct loader *self)
{
	const struct refrain_batch *b;
	int rc = core_next(self->core, &b, self->timeout_s);

	if (rc <= 0)
		return NULL;
	self->step = b->step + 1;
	return batch_new(self->core, b, self->targets);
}

static PyObject *loader_next(PyObject *object)
{
	struct loader *self = (struct loader *)object;
	PyObject *batch;

	if (!handle(object))
		return NULL;
	if (self->iterating && epoch_over(self)) {
		self->iterating = false;
		return NULL;
	}
	batch = next_batch(self);
	if (!batch && !PyErr_Occurred()) {
		self->iterating = false;
		self->ended = true;
	}
	return batch;
}

/* -- Asking ---------------------------------------------------------------- */

static PyObject *loader_state(PyObject *object, PyObject *args)
{
	unsigned long long step = ((struct loader *)object)->step;

	if (!PyArg_ParseTuple(args, "|K", &step) || !handle(object))
		return NULL;
	return core_state(((struct loader *)object)->core, step);
}

static PyObject *loader_epoch_end(PyObject *object, PyObject *args)
{
	struct refrain_loader *l = handle(object);
	unsigned long long epoch;

	if (!l || !PyArg_ParseTuple(args, "K", &epoch))
		return NULL;
	return PyLong_FromUnsignedLongLong(
		epoch_end((struct loader *)object, l, epoch));
}

static PyObject *loader_stats(PyObject *object, PyObject *unused)
{
	struct refrain_loader *l = handle(object);
	char json[JSON_BYTES];
	int rc;

	(void)unused;
	if (!l)
		return NULL;
	rc = refrain_stats_json(l, json, sizeof(json));
	if (rc < 0)
		return raise_error(NULL, rc, refrain_message(l));
	return PyUnicode_FromStringAndSize(json, rc);
}

static PyObject *loader_echo_log(PyObject *object, PyObject *unused)
{
	struct refrain_loader *l = handle(object);
	struct refrain_stats stats = {.size = sizeof(stats)};
	PyObject *text;
	size_t room;
	char *log;
	int rc;

	(void)unused;
	if (!l)
		return NULL;
	/* fails only in a child after fork() */
	(void)refrain_stats_get(l, &stats);
	room = (size_t)(stats.echo_changes + 16) * ECHO_LINE_BYTES;
	log = PyMem_Malloc(room);
	if (!log)
		return PyErr_NoMemory();
	rc = refrain_echo_log(l, log, room);
	text = rc < 0 ? raise_error(NULL, rc, refrain_message(l))
		      : PyUnicode_FromStringAndSize(log, rc);
	PyMem_Free(log);
	return text;
}

/* Convert the number first, because integers of NumPy are not of Python's type
 * int. */
static PyObject *loader_path(PyObject *object, PyObject *number)
{
	struct refrain_loader *l = handle(object);
	PyObject *index = l ? PyNumber_Index(number) : NULL;
	const char *path;
	uint64_t i;

	if (!index)
		return NULL;
	i = PyLong_AsUnsignedLongLong(index);
	Py_DECREF(index);
	path = PyErr_Occurred() ? NULL : refrain_path(l, i);
	if (path)
		return PyUnicode_DecodeFSDefault(path);
	PyErr_Clear();
	return PyErr_Format(PyExc_IndexError, "there is no example %R", number);
}

/* Returns the name of the class whose number the arguments have, or None. */
static PyObject *name_of_class(PyObject *object, PyObject *args,
	const char *(*find)(struct refrain_loader *, int64_t, size_t *),
	long long *label)
{
	struct refrain_loader *l = handle(object);
	const char *name;
	size_t bytes;

	if (!l || !PyArg_ParseTuple(args, "L", label))
		return NULL;
	name = find(l, *label, &bytes);
	if (name)
		return PyUnicode_DecodeFSDefaultAndSize(
			name, (Py_ssize_t)bytes);
	Py_RETURN_NONE;
}

static PyObject *loader_class(PyObject *object, PyObject *args)
{
	long long label = 0;
	PyObject *name =
		name_of_class(object, args, refrain_class_name, &label);

	if (name != Py_None ||
		(label >= 0 &&
			(uint64_t)label < refrain_classes(handle(object))))
		return name; /* None: no example has this label */
	Py_DECREF(name);
	return PyErr_Format(PyExc_IndexError, "there is no class %lld", label);
}

static PyObject *loader_annotation_class(PyObject *object, PyObject *args)
{
	long long label;

	return name_of_class(object, args, refrain_annotation_class, &label);
}

static PyMethodDef loader_methods[] = {
	{"close", loader_close, METH_NOARGS,
		"close()\n--\n\nEnd the loader within a second. Batches stay "
		"valid. Returns the number of reads\nand callbacks that hang: "
		"they are left behind."},
	{"_reset", loader_reset, METH_NOARGS, "Let __init__ open again."},
	{"_state", loader_state, METH_VARARGS, "The position of a step."},
	{"_epoch_end", loader_epoch_end, METH_VARARGS,
		"Steps of the run until an epoch is over."},
	{"_stats_json", loader_stats, METH_NOARGS, "Statistics as JSON."},
	{"echo_log", loader_echo_log, METH_NOARGS,
		"echo_log()\n--\n\nThe changes of the echo factor by "
		"echo='auto' so far, a str. A loader with this\ntext as "
		"echo_log= serves the same stream."},
	{"path", loader_path, METH_O,
		"path(index)\n--\n\nThe path of an example, a str relative to "
		"the dataset. IndexError if there is\nno such example."},
	{"_class", loader_class, METH_VARARGS, "The name of a class."},
	{"_annotation_class", loader_annotation_class, METH_VARARGS,
		"The name of a class of boxes, or None."},
	{NULL, NULL, 0, NULL},
};

/* -- Attributes ------------------------------------------------------------ */

#define GET(name, call)                                                        \
	static PyObject *name(PyObject *object, void *unused)                  \
	{                                                                      \
		struct refrain_loader *l = handle(object);                     \
                                                                               \
		(void)unused;                                                  \
		return l ? PyLong_FromUnsignedLongLong(call(l)) : NULL;        \
	}
GET(get_examples, refrain_examples)
GET(get_class_count, refrain_classes)
GET(get_steps_left, refrain_steps_left)

static PyObject *get_step(PyObject *object, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((struct loader *)object)->step);
}

static PyObject *get_memory(PyObject *object, void *unused)
{
	struct refrain_loader *l = handle(object);
	const void *base;
	size_t bytes;
	int rc;

	(void)unused;
	if (!l)
		return NULL;
	rc = refrain_memory(l, &base, &bytes);
	if (rc == -ENODATA)
		Py_RETURN_NONE;
	if (rc < 0)
		return raise_error(NULL, rc, refrain_message(l));
	return Py_BuildValue(
		"(Kn)", (unsigned long long)(uintptr_t)base, (Py_ssize_t)bytes);
}

/* Between two epochs, returns the next one. */
static PyObject *get_epoch(PyObject *object, void *unused)
{
	struct loader *self = (struct loader *)object;
	struct refrain_loader *l = handle(object);

	(void)unused;
	if (!l)
		return NULL;
	if (!self->iterating)
		find_epoch(self, l);
	return PyLong_FromUnsignedLongLong(self->epoch);
}

static PyObject *get_closed(PyObject *object, void *unused)
{
	struct loader *self = (struct loader *)object;

	(void)unused;
	return PyBool_FromLong(
		!self->core || !self->core->l || self->core->closing);
}

static PyGetSetDef loader_attributes[] = {
	{"examples", get_examples, NULL, "Number of examples.", NULL},
	{"_class_count", get_class_count, NULL, "Classes.", NULL},
	{"steps_left", get_steps_left, NULL,
		"Number of steps left in the run; with echo='auto', if the "
		"factor stays the same.",
		NULL},
	{"step", get_step, NULL, "Number of the next step of the run.", NULL},
	{"epoch", get_epoch, NULL,
		"Number of the epoch that iter() is in or begins next.", NULL},
	{"memory", get_memory, NULL,
		"(address, bytes) of the memory of a share, for "
		"cudaHostRegister() and the like. It\nis read-only. After a "
		"change of stats()['share_takeovers'] batches lie elsewhere.\n"
		"None without a share, and before its first batch.",
		NULL},
	{"closed", get_closed, NULL, "True after close().", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot loader_slots[] = {
	{Py_tp_doc, "A loader of the library; see refrain.Loader."},
	{Py_tp_init, loader_init},
	{Py_tp_dealloc, loader_dealloc},
	{Py_tp_traverse, loader_traverse},
	{Py_tp_clear, loader_clear},
	{Py_tp_iter, loader_iter},
	{Py_tp_iternext, loader_next},
	{Py_tp_methods, loader_methods},
	{Py_tp_getset, loader_attributes},
	{0, NULL},
};

PyType_Spec loader_spec = {
	.name = "refrain._refrain.Loader",
	.basicsize = sizeof(struct loader),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = loader_slots,
};

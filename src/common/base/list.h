/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked list with a head node. list_init() makes a node point
 * to itself, and so does list_del(), so list_del() may be called twice. The
 * caller does the locking. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

/* clang-format would treat the minus as a sign. */
/* clang-format off */
#define CONTAINER_OF(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))
/* clang-format on */

/* Returns the first or the last element of a list that is not empty. */
#define LIST_FIRST(head, type, member)                                         \
	CONTAINER_OF(list_next(head), type, member)
#define LIST_LAST(head, type, member)                                          \
	CONTAINER_OF(list_prev(head), type, member)

#define LIST_FOREACH(pos, head)                                                \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)

/* Like LIST_FOREACH, but `pos` may be deleted in the body. */
#define LIST_FOREACH_SAFE(pos, tmp, head)                                      \
	for (struct list *pos = (head)->next, *tmp = pos->next; pos != (head); \
		pos = tmp, tmp = pos->next)

/* Initialises a static variable. */
#define LIST_INIT(head)                                                        \
	{                                                                      \
		&(head), &(head)                                               \
	}

/* Returns the node after or before a node. The head counts as a node. */
static inline struct list *list_next(const struct list *l)
{
	return l->next;
}

static inline struct list *list_prev(const struct list *l)
{
	return l->prev;
}

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_add(struct list *head, struct list *l)
{
	l->next = head->next;
	l->prev = head;
	head->next->prev = l;
	head->next = l;
}

static inline void list_add_tail(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

/* Move all of `from` to the end of `to`. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

static inline unsigned list_count(const struct list *head)
{
	unsigned n = 0;

	LIST_FOREACH(l, head)
		n++;
	return n;
}

#endif

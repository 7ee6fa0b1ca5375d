/* test_mailbox.c - messages between threads. */
#include "base/sys/mailbox.h"

#include <poll.h>
#include <stdint.h>

#include "base/sys/thread.h"
#include "tests/lib/test.h"

/* A full mailbox refuses, and the message stays the sender's. */
TEST(mailbox_refuses_when_full)
{
    struct qf_mailbox *box = qf_mailbox_new(2);
    int a, b, c;

    CHECK(qf_mailbox_try_send(box, &a));
    CHECK(qf_mailbox_try_send(box, &b));
    CHECK(!qf_mailbox_try_send(box, &c));
    CHECK(!qf_mailbox_send(box, &c, 10));
    CHECK(qf_mailbox_try_receive(box) == &a);
    CHECK(qf_mailbox_try_send(box, &c));
    CHECK(qf_mailbox_try_receive(box) == &b);
    CHECK(qf_mailbox_try_receive(box) == &c);
    CHECK(qf_mailbox_try_receive(box) == NULL);
    (void)qf_mailbox_free(box, NULL);
}

static bool readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

/* The descriptor is readable exactly while messages wait, and after close. */
TEST(mailbox_descriptor_follows_its_contents)
{
    struct qf_mailbox *box = qf_mailbox_new(4);
    int a;

    CHECK(!readable(qf_mailbox_fd(box)));
    CHECK(qf_mailbox_try_send(box, &a));
    CHECK(readable(qf_mailbox_fd(box)));
    CHECK(qf_mailbox_try_receive(box) == &a);
    CHECK(!readable(qf_mailbox_fd(box)));
    qf_mailbox_close(box);
    CHECK(readable(qf_mailbox_fd(box)));
    CHECK(!qf_mailbox_try_send(box, &a));
    CHECK(qf_mailbox_receive(box, -1) == NULL);
    (void)qf_mailbox_free(box, NULL);
}

/* What is sent later wakes nobody, and is not left behind when somebody is woken. */
TEST(mailbox_keeps_what_is_sent_later_for_the_next_look)
{
    struct qf_mailbox *box = qf_mailbox_new(3);
    int a, b, c;

    CHECK(!readable(qf_mailbox_fd(box)));
    CHECK(qf_mailbox_try_send_later(box, &a));
    CHECK(!readable(qf_mailbox_fd(box)));
    CHECK_EQ(qf_mailbox_count(box), 1);
    qf_mailbox_nudge(box);
    CHECK(readable(qf_mailbox_fd(box)));
    CHECK(qf_mailbox_try_receive(box) == &a);
    CHECK(!readable(qf_mailbox_fd(box)));
    qf_mailbox_nudge(box); /* nothing to wake anybody for */
    CHECK(!readable(qf_mailbox_fd(box)));
    CHECK(qf_mailbox_try_send_later(box, &a));
    CHECK(qf_mailbox_try_send(box, &b));
    CHECK(qf_mailbox_try_send_later(box, &c));
    CHECK(!qf_mailbox_try_send_later(box, &c)); /* full */
    CHECK(readable(qf_mailbox_fd(box)));
    CHECK(qf_mailbox_receive(box, -1) == &a);
    CHECK(qf_mailbox_receive(box, -1) == &b);
    CHECK(qf_mailbox_receive(box, -1) == &c);
    CHECK(!readable(qf_mailbox_fd(box)));
    (void)qf_mailbox_free(box, NULL);
}

static void send_later_and_nudge(void *arg)
{
    struct qf_mailbox *box = arg;

    for (uintptr_t i = 1; i <= 1000; i++) {
        while (!qf_mailbox_try_send_later(box, (void *)i))
            continue;
        qf_mailbox_nudge(box);
    }
}

/* However often the reader sleeps for ever meanwhile: a nudge gets it to see what was sent later. */
TEST(mailbox_nudges_a_reader_that_sleeps)
{
    struct qf_mailbox *box = qf_mailbox_new(1);
    struct qf_thread *thread = qf_thread_start("nudge", send_later_and_nudge, box);

    for (uintptr_t i = 1; i <= 1000; i++)
        CHECK(qf_mailbox_receive(box, -1) == (void *)i);
    (void)qf_thread_join(thread);
    (void)qf_mailbox_free(box, NULL);
}

enum { PER_SENDER = 20000, SENDERS = 3 };

static void send_numbers(void *arg)
{
    struct qf_mailbox *box = arg;

    for (uintptr_t i = 1; i <= PER_SENDER; i++)
        if (!qf_mailbox_send(box, (void *)i, -1))
            return;
}

/* Nothing is lost or doubled with several senders and a small buffer. */
TEST(mailbox_carries_every_message_of_many_senders)
{
    struct qf_mailbox *box = qf_mailbox_new(16);
    struct qf_thread *senders[SENDERS];
    uint64_t sum = 0;

    for (int i = 0; i < SENDERS; i++)
        senders[i] = qf_thread_start("sender", send_numbers, box);
    for (int i = 0; i < SENDERS * PER_SENDER; i++)
        sum += (uintptr_t)qf_mailbox_receive(box, -1);
    for (int i = 0; i < SENDERS; i++)
        (void)qf_thread_join(senders[i]);
    CHECK_EQ(sum, (uint64_t)SENDERS * PER_SENDER * (PER_SENDER + 1) / 2);
    (void)qf_mailbox_free(box, NULL);
}

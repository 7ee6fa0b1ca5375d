/* blocking.c - one call of every kind that tests/checks/nonblocking must reject; never compiled. */
void every_kind(void)
{
    qf_lock_take(lock);
    (void)usleep(1000);
    (void)qf_mailbox_send(box, message, -1);
    (void)poll(fds, 1, 1000);
    (void)write(fd, "x", 1);
    (void)connect(fd, address, len);
    (void)curl_easy_perform(easy);
    (void)grpc_completion_queue_next(queue, deadline, NULL);
    (void)store_get(store, name, &call, &err);
    /* sleep(1) and "sleep(1)" are words, and qf_strbuf_puts(buf, "read(2)") is a call of another
     * kind. */
    it.read(file), it->write(file);
}

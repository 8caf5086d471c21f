package org.apache.rocketmq.store;

import java.nio.ByteBuffer;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;

import org.apache.rocketmq.common.SystemClock;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;

/**
 * Reaches the parts of the reference that it keeps to its own package.
 */
public final class Inside {
    /** Civil time of every store that this program opens, in ms; only the program moves it. */
    public static volatile long clockMs = 1_700_000_000_000L;

    public static final SystemClock CLOCK = new SystemClock() {
        @Override
        public long now() {
            return clockMs;
        }
    };

    private Inside() {
    }

    /** Appends one encoded message at the buffer's position, as the commit log does under its lock. */
    public static AppendMessageResult append(CommitLog log, DefaultMessageStore store, long fileFromOffset,
        ByteBuffer segment, MessageExtBrokerInner message) {
        return callback(log, store).doAppend(fileFromOffset, segment, segment.remaining(), message,
            new PutMessageContext(message.getTopic() + "-" + message.getQueueId()));
    }

    /** Appends an encoded batch at the buffer's position. */
    public static AppendMessageResult append(CommitLog log, DefaultMessageStore store, long fileFromOffset,
        ByteBuffer segment, MessageExtBatch batch, PutMessageContext context) {
        return callback(log, store).doAppend(fileFromOffset, segment, segment.remaining(), batch, context);
    }

    private static AppendMessageCallback callback(CommitLog log, DefaultMessageStore store) {
        return log.new DefaultAppendMessageCallback(store.getMessageStoreConfig());
    }

    /**
     * Runs a task in a new thread, so that its scratch buffer for checking is empty, or first grown to {@code scratch}
     * bytes as if a record of that size had been checked before.
     */
    public static <T> T inThread(CommitLog log, int scratch, Callable<T> task) throws Exception {
        FutureTask<T> future = new FutureTask<>(() -> {
            if (scratch > 0) {
                log.borrowCheckMessageBuffer(scratch);
            }
            return task.call();
        });
        new Thread(future).start();
        return future.get();
    }
}

package stormlog.compat;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.SystemClock;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.Inside;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** Makes stores of the reference with small files and a clock that only the program moves. */
final class Stores {
    static final int SEGMENT_SIZE = 16 * 1024;
    static final int QUEUE_FILE_SIZE = 20 * 40;
    static final int INDEX_SLOTS = 101;
    static final int INDEX_ENTRIES = 1000;

    private Stores() {
    }

    static MessageStoreConfig config(Path root) {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.toString());
        config.setStorePathCommitLog(root.resolve("commitlog").toString());
        config.setMappedFileSizeCommitLog(SEGMENT_SIZE);
        config.setMappedFileSizeConsumeQueue(QUEUE_FILE_SIZE);
        config.setMaxHashSlotNum(INDEX_SLOTS);
        config.setMaxIndexNum(INDEX_ENTRIES);
        config.setFlushDiskType(FlushDiskType.SYNC_FLUSH);
        config.setHaListenPort(0);
        return config;
    }

    static DefaultMessageStore open(MessageStoreConfig config) throws IOException {
        return new DefaultMessageStore(config, null, null, new BrokerConfig(), new ConcurrentHashMap<>()) {
            @Override
            public SystemClock getSystemClock() {
                return Inside.CLOCK;
            }
        };
    }

    static Path temporary() throws IOException {
        Path dir = Files.createTempDirectory("stormlog-compat");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(dir)));
        return dir;
    }

    static void copy(Path from, Path to) throws IOException {
        Files.walkFileTree(from, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path dir, BasicFileAttributes attributes) throws IOException {
                Files.createDirectories(to.resolve(from.relativize(dir).toString()));
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.copy(file, to.resolve(from.relativize(file).toString()));
                return FileVisitResult.CONTINUE;
            }
        });
    }

    static void delete(Path dir) {
        try {
            Files.walkFileTree(dir, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                    Files.deleteIfExists(file);
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult postVisitDirectory(Path done, IOException failure) throws IOException {
                    Files.deleteIfExists(done);
                    return FileVisitResult.CONTINUE;
                }
            });
        } catch (IOException failure) {
            System.err.println("not removed: " + dir + ": " + failure);
        }
    }
}

package stormlog.compat;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Properties;

/**
 * Runs the published store: see the usage. Results go to standard output, which the reference's own log is kept off.
 */
public final class Main {
    private static final String USAGE = """
        compat vectors OUT_DIR      write the golden vectors, JSON lines
        compat write-store OUT_DIR  write OUT_DIR/store, and the reference's own view of it beside it
        compat read-store DIR       print every message of a store directory, a JSON line each
        compat read-queues DIR      print every consume queue, a JSON line each
        compat recover DIR          print what recovery makes of a directory, one JSON line
        The reading commands work on a copy: DIR stays as it is.""";

    private Main() {
    }

    static String version() throws Exception {
        Properties properties = new Properties();
        properties.load(Main.class.getResourceAsStream("/compat.properties"));
        return properties.getProperty("rocketmq.version");
    }

    /** Ends by exit: the reference leaves threads behind that would keep the process. */
    public static void main(String[] args) {
        try {
            System.exit(run(args));
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static int run(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        if (args.length != 2) {
            System.err.println(USAGE);
            return 2;
        }
        Path dir = Path.of(args[1]);
        switch (args[0]) {
            case "vectors" -> Vectors.write(dir);
            case "write-store" -> StoreWriter.write(dir);
            case "read-store" -> StoreReader.on(dir, reader -> reader.messages().forEach(out::println));
            case "read-queues" -> StoreReader.on(dir, reader -> reader.queues().forEach(out::println));
            case "recover" -> StoreReader.on(dir, reader -> out.println(reader.recovered()));
            default -> {
                System.err.println(USAGE);
                return 2;
            }
        }
        out.flush();
        return 0;
    }
}

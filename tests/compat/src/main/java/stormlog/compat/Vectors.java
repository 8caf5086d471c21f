package stormlog.compat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** Writes all vectors: a file a subject, a JSON line a vector. */
final class Vectors {
    private final Map<String, List<String>> files = new LinkedHashMap<>();
    private final Set<String> ids = new LinkedHashSet<>();
    private final String version;

    private Vectors(String version) {
        this.version = version;
    }

    static void write(Path out) throws Exception {
        Vectors vectors = new Vectors(Main.version());
        Path root = Stores.temporary();
        DefaultMessageStore plain = store(root.resolve("plain"), false);
        DefaultMessageStore withPropertyCrc = store(root.resolve("property-crc"), true);
        Records records = new Records(plain, withPropertyCrc);
        ClientVectors.add(vectors);
        HashVectors.add(vectors, root);
        StoredVectors.add(vectors, records);
        CheckVectors.add(vectors, records, plain);
        Files.createDirectories(out);
        for (Map.Entry<String, List<String>> file : vectors.files.entrySet()) {
            Files.writeString(out.resolve(file.getKey()), String.join("\n", file.getValue()) + "\n",
                StandardCharsets.UTF_8);
        }
    }

    private static DefaultMessageStore store(Path root, boolean propertyCrc) throws Exception {
        MessageStoreConfig config = Stores.config(root);
        config.setEnabledAppendPropCRC(propertyCrc);
        DefaultMessageStore store = Stores.open(config);
        if (!store.load()) {
            throw new IllegalStateException("the reference does not load an empty store");
        }
        return store;
    }

    /** Adds a vector: its fields follow the id and kind, and the artefact and version follow them. */
    void add(String file, String id, String kind, String artefact, Object... fields) {
        if (!ids.add(id)) {
            throw new IllegalArgumentException("two vectors named " + id);
        }
        Map<String, Object> vector = Json.object("id", id, "kind", kind);
        vector.putAll(Json.object(fields));
        vector.put("artefact", "org.apache.rocketmq:" + artefact);
        vector.put("version", version);
        files.computeIfAbsent(file, name -> new ArrayList<>()).add(Json.line(vector));
    }
}

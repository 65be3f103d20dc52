import java.io.FileInputStream;
import java.io.ObjectInputStream;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import net.jini.core.entry.Entry;
import net.jini.core.lease.Lease;
import net.jini.space.JavaSpace05;
import net.jini.space.MatchSet;

/** Entries by shape: one class each, as one would write them; the adapter generates the classes. */
public final class Entries {
    private Entries() {}

    /** What the generated classes have in common. */
    public interface Shape extends Entry {
        Object[] values();
    }

    /** Opens the space whose proxy is in a file; here, so that its classes are found. */
    public static JavaSpace05 open(String file) throws Exception {
        try (ObjectInputStream in = new ObjectInputStream(new FileInputStream(file))) {
            return (JavaSpace05) in.readObject();
        }
    }

    /** Writes many entries in one call. */
    public static void writeAll(JavaSpace05 space, Entry[] entries) throws Exception {
        List<Long> leases = Collections.nCopies(entries.length, Lease.FOREVER);
        space.write(List.of(entries), null, leases);
    }

    /** Writes entries one by one; returns how many nanoseconds that took. */
    public static long writeEach(JavaSpace05 space, Entry[] entries) throws Exception {
        long beginNs = System.nanoTime();
        for (Entry entry : entries) {
            space.write(entry, null, Lease.FOREVER);
        }
        return System.nanoTime() - beginNs;
    }

    /** Takes a match of each template, one by one; returns how many nanoseconds that took. */
    public static long takeEach(JavaSpace05 space, Entry[] templates, Shape[] taken)
            throws Exception {
        long beginNs = System.nanoTime();
        for (int place = 0; place < templates.length; place++) {
            taken[place] = (Shape) space.take(templates[place], null, Long.MAX_VALUE);
        }
        return System.nanoTime() - beginNs;
    }

    /** Several templates, as the space wants them. */
    public static List<Entry> listOf(Entry[] templates) {
        return List.of(templates);
    }

    /** Removes an entry that matches one of the templates; null if there is none in time. */
    public static Entry takeAny(JavaSpace05 space, List<Entry> templates, long timeoutMs)
            throws Exception {
        Iterator<?> taken = space.take(templates, null, timeoutMs, 1).iterator();
        return taken.hasNext() ? (Entry) taken.next() : null;
    }

    /** An entry that matches one of the templates; null if there is none now. */
    public static Entry readAny(JavaSpace05 space, List<Entry> templates) throws Exception {
        return space.contents(templates, null, Lease.FOREVER, 1).next();
    }

    /** How many entries match. */
    public static int count(JavaSpace05 space, Entry template) throws Exception {
        MatchSet set =
                space.contents(Collections.singleton(template), null, Lease.FOREVER, Long.MAX_VALUE);
        int count = 0;
        while (set.next() != null) {
            count++;
        }
        return count;
    }
}

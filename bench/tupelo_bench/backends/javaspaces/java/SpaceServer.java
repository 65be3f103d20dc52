import java.io.FileOutputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import javax.net.ServerSocketFactory;

/**
 * A transient Outrigger, Apache River's JavaSpace, on the loopback.
 *
 * <p>Started with the configuration and a file: the proxy is written there when the space is ready.
 * Neither lookup service nor multicast is involved: whoever reads the file has the space.
 */
public final class SpaceServer {
    private SpaceServer() {}

    /** By default River listens on all addresses. */
    public static final class Loopback extends ServerSocketFactory {
        @Override
        public ServerSocket createServerSocket(int port) throws java.io.IOException {
            ServerSocket socket = new ServerSocket();
            socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            return socket;
        }

        @Override
        public ServerSocket createServerSocket(int port, int backlog) throws java.io.IOException {
            return createServerSocket(port);
        }

        @Override
        public ServerSocket createServerSocket(int port, int backlog, InetAddress address)
                throws java.io.IOException {
            return createServerSocket(port);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path file = Path.of(arguments[1]);
        while (true) {
            Object space = open(arguments[0]);
            publish(space, file);
            // Who wants an empty space removes the file.
            while (Files.exists(file)) {
                Thread.sleep(LOOK_MS);
            }
            method(space, "destroy").invoke(space);
        }
    }

    private static final long LOOK_MS = 20;

    private static Object open(String configuration) throws Exception {
        Class<?> lifeCycle = Class.forName("com.sun.jini.start.LifeCycle");
        Constructor<?> constructor =
                Class.forName("com.sun.jini.outrigger.TransientOutriggerImpl")
                        .getDeclaredConstructor(String[].class, lifeCycle);
        constructor.setAccessible(true);
        return constructor.newInstance(new String[] {configuration}, null);
    }

    private static void publish(Object space, Path file) throws Exception {
        Path partial = file.resolveSibling(file.getFileName() + ".part");
        try (ObjectOutputStream out =
                new ObjectOutputStream(new FileOutputStream(partial.toFile()))) {
            out.writeObject(method(space, "getServiceProxy").invoke(space));
        }
        Files.move(partial, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private static Method method(Object space, String name) throws Exception {
        Method method = space.getClass().getMethod(name);
        method.setAccessible(true);
        return method;
    }
}

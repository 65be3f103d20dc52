package java.rmi.activation;

/** Left out of Java since version 17; River names it, and a transient space never uses it. */
public class UnknownObjectException extends ActivationException {
    private static final long serialVersionUID = 1;
}

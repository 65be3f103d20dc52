package java.rmi.activation;

/** Left out of Java since version 17; River names it, and a transient space never uses it. */
public interface ActivationSystem extends java.rmi.Remote {}
